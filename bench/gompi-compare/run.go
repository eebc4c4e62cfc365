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

	"gompi/bench/internal/contest"
	"gompi/bench/report"
)

func run(args []string, stdout, stderr io.Writer) int {
	cfg, err := parse(args)
	return contest.Main(cfg.set, err, usage, cfg.compare, stdout, stderr)
}

// compare measures, with a line of progress for each cell on stderr, and writes
// the report of what it has measured, also if it was interrupted.
func (cfg config) compare(ctx context.Context, stdout, stderr io.Writer) error {
	if cfg.ucx && !builtWithC(cfg.Bench) {
		return fmt.Errorf("%s was built without C: make compare-ucx builds one that has UCX", cfg.Bench)
	}
	shop, err := contest.NewWorkshop()
	if err != nil {
		return err
	}
	defer shop.Close()
	if cfg.Hosts, err = shop.NewHosts(ctx, cfg.HostNames, cfg.RSH, cfg.NPs); err != nil {
		return err
	}
	res := results{cfg: cfg, record: contest.Begin(stderr)}
	res.entrants, res.record.Absent = cfg.enter(ctx, shop)
	if err := res.record.Create(cfg.CSV); err != nil {
		return err
	}
	rest := compute(int(cfg.busy))
	plan := cfg.Plan
	if plan.Hosts == nil { // how near this machine's processors are matters to no link
		plan.Probe = func() contest.Probe {
			rest()
			defer func() { rest = compute(int(cfg.busy)) }()
			probe := contest.ProbeFlag()
			res.record.Probes = append(res.record.Probes, probe)
			return probe
		}
	}
	plan.Yardstick = cfg.yardstick()
	ended := plan.Run(ctx, res.entrants, func(s report.Sample) error {
		if s.Impl != report.Limit {
			fmt.Fprintf(stderr, "round %d of %d: %s, np=%d, %s of %s: %s us\n", s.Round, plan.Rounds, s.Impl, s.NP, s.Op, report.Bytes(s.Bytes), report.Time(s.Median))
		}
		return res.record.Sample(s)
	}, res.record.Miss)
	rest()
	if ended == nil && plan.Hosts == nil {
		res.memory, ended = cfg.memory(ctx, shop)
	}
	return errors.Join(ended, res.record.End(), res.write(stdout), res.section().AddTo(cfg.HTML))
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
	ours := cfg.ours(cfg.Bench)
	if cfg.measured.Alloc {
		ours = ours.WithArgs("-alloc")
	}
	here = []contest.Entrant{ours}
	for _, e := range peers {
		here = append(here, e.WithArgs("-impl", e.Name))
	}
	if cfg.ucx {
		e, err := shop.UCX(ctx, strings.TrimPrefix(cfg.Transport, overUCX))
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
	return append(here, torch.Gloo(cfg.Gompirun)), absent
}

// ours is gompi running program; over UCX's transports with each rank on a host of its own, or it
// would use shared memory.
func (cfg config) ours(program string) contest.Entrant {
	e := contest.Gompi(cfg.Gompirun, program, cfg.Env()...)
	if strings.HasPrefix(cfg.Transport, overUCX) {
		e = e.Apart()
	}
	return e
}
