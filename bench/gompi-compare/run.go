package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gompi/bench/internal/contest"
	"gompi/bench/internal/limits"
	"gompi/bench/report"
	"gompi/internal/cli"
)

func run(args []string, stdout, stderr io.Writer) int {
	return contest.Program{Name: "gompi-compare", Usage: usage, Parse: func(args []string) (*cli.Set, contest.Measure, error) {
		cfg, err := parse(args)
		return cfg.set, cfg.compare, err
	}}.Main(args, stdout, stderr)
}

// compare measures, with a line of progress for each cell on stderr, and writes
// the report of what it has measured, also if it was interrupted.
func (cfg config) compare(ctx context.Context, stdout, stderr io.Writer) error {
	if cfg.ucx && !builtWithC(cfg.bench) {
		return fmt.Errorf("%s was built without C: make compare-ucx builds one that has UCX", cfg.bench)
	}
	shop, err := contest.NewWorkshop()
	if err != nil {
		return err
	}
	defer shop.Close()
	if len(cfg.hosts) > 0 {
		if cfg.plan.Hosts, err = shop.NewHosts(ctx, cfg.hosts, cfg.rsh, cfg.plan.NPs); err != nil {
			return err
		}
	}
	res := results{cfg: cfg, began: time.Now(), load: contest.Load()}
	res.entrants, res.absent = cfg.enter(ctx, shop)
	raw, err := contest.CreateRaw(cfg.csv)
	if err != nil {
		return err
	}
	plan := cfg.plan
	rest := compute(int(cfg.busy))
	if plan.Hosts == nil { // how near this machine's processors are matters to no link
		plan.Probe = func() contest.Probe {
			rest()
			defer func() { rest = compute(int(cfg.busy)) }()
			res.probes = append(res.probes, contest.ProbeFlag())
			return res.probes[len(res.probes)-1]
		}
	}
	plan.Yardstick = cfg.yardstick()
	ended := plan.Run(ctx, res.entrants, func(s report.Sample) error {
		res.samples = append(res.samples, s)
		if s.Impl != report.Limit {
			fmt.Fprintf(stderr, "round %d of %d: %s, np=%d, %s of %s: %s us\n", s.Round, plan.Rounds, s.Impl, s.NP, s.Op, report.Bytes(s.Bytes), report.Usec(s.Median))
		}
		return raw.Write(s)
	}, func(m contest.Miss) {
		res.misses = append(res.misses, m)
		fmt.Fprintln(stderr, m)
	})
	rest()
	if ended == nil && plan.Hosts == nil {
		res.memory, ended = cfg.memory(ctx, shop)
	}
	res.took = time.Since(res.began)
	res.load = max(res.load, contest.Load())
	ended = errors.Join(ended, raw.Close(), res.write(stdout))
	if cfg.html != "" {
		ended = errors.Join(ended, res.section().AddTo(cfg.html))
	}
	return ended
}

// builtWithC reports whether a program of Go says that it was. Without, its ranks would use TCP.
func builtWithC(program string) bool {
	info, err := buildinfo.ReadFile(program)
	return err == nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "1"})
}

// compute keeps n threads busy until rest is called.
func compute(n int) (rest func()) {
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + n)
	var over atomic.Bool
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for !over.Load() {
			}
		})
	}
	return func() {
		over.Store(true)
		all.Wait()
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) - n)
	}
}

// enter returns gompi and the peers that are here, and why others are not.
func (cfg config) enter(ctx context.Context, shop *contest.Workshop) (here []contest.Entrant, absent []string) {
	peers, absent := shop.EnterAll(ctx, cfg.peers, "mpibench")
	ours := cfg.ours(cfg.bench)
	if cfg.measured.Alloc {
		ours = ours.WithArgs("-alloc")
	}
	here = []contest.Entrant{ours}
	for _, e := range peers {
		here = append(here, e.WithArgs("-impl", e.Name))
	}
	if cfg.ucx {
		e, err := shop.UCX(ctx, strings.TrimPrefix(cfg.transport, overUCX))
		if err != nil {
			absent = append(absent, fmt.Sprintf("%s: %v", ucx, err))
		} else {
			here = append(here, e)
		}
	}
	if !cfg.gloo {
		return here, absent
	}
	torch, err := shop.Torch(ctx)
	if err == nil && cfg.measured.InPlace {
		err = errors.New("what gloo has in place it has in no other form")
	}
	if err != nil {
		return here, append(absent, fmt.Sprintf("%s: %v", gloo, err))
	}
	return append(here, torch.Gloo(cfg.gompirun)), absent
}

// ours is gompi running program; over UCX's transports with each rank on a host of its own, or it
// would use shared memory.
func (cfg config) ours(program string) contest.Entrant {
	e := contest.Gompi(cfg.gompirun, program, cfg.env()...)
	if strings.HasPrefix(cfg.transport, overUCX) {
		e = e.Apart()
	}
	return e
}

// env is what is set for gompi's ranks.
func (cfg config) env() []string {
	if cfg.transport == "" {
		return nil
	}
	return []string{"GOMPI_TRANSPORT=" + cfg.transport}
}

// yardstick returns what measures the least times of an operation, nil where
// nothing can be said: with one processor, with busy ones, when gompi is told what
// to use, and on other hosts unless their links are known.
func (cfg config) yardstick() func(op string, np int) []report.Row {
	if cfg.link.Rate > 0 {
		return cfg.linkYardstick()
	}
	processors := runtime.NumCPU()
	if processors < 2 || cfg.busy > 0 || cfg.transport != "" || len(cfg.hosts) > 0 {
		return nil
	}
	gauges := make(map[int]*limits.Gauge) // by number of threads
	return func(op string, np int) []report.Row {
		cells, err := cfg.measured.Rows(op)
		if err != nil || !limits.Known(op) {
			return nil
		}
		threads := min(np, processors)
		if gauges[threads] == nil {
			gauges[threads] = limits.New(threads)
		}
		l := gauges[threads].Measure(np, time.Duration(contest.ProbeFlag().Nanoseconds))
		var rows []report.Row
		for _, r := range cells {
			if us, ok := l.Time(op, r.Bytes); ok {
				r.Impl, r.NP, r.Median = report.Limit, np, us
				rows = append(rows, r)
			}
		}
		return rows
	}
}
