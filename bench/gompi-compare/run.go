package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"gompi/bench/internal/contest"
	"gompi/bench/report"
	"gompi/internal/cli"
)

func run(args []string, stdout, stderr io.Writer) int {
	return contest.Program{Name: "gompi-compare", Usage: usage, Parse: func(args []string) (*cli.Set, contest.Measure, error) {
		cfg, err := parse(args)
		return cfg.set, cfg.compare, err
	}}.Main(args, stdout, stderr)
}

// compare measures, with a line of progress for each run on stderr, and writes
// the report of what it has measured, also if it was interrupted.
func (cfg config) compare(ctx context.Context, stdout, stderr io.Writer) error {
	shop, err := contest.NewWorkshop()
	if err != nil {
		return err
	}
	defer shop.Close()
	res := results{plan: cfg.plan, transport: cfg.transport, before: contest.ProbeFlag()}
	res.entrants, res.absent = enter(ctx, cfg, shop)
	raw, err := createRaw(cfg.csv)
	if err != nil {
		return err
	}
	ended := cfg.plan.Run(ctx, res.entrants, func(s report.Sample) error {
		res.samples = append(res.samples, s)
		fmt.Fprintf(stderr, "round %d of %d: %s %s of %s: %s us\n", s.Round, cfg.plan.Rounds, s.Impl, s.Op, report.Bytes(s.Bytes), report.Usec(s.Median))
		return raw.write(s)
	}, func(m contest.Miss) {
		res.misses = append(res.misses, m)
		fmt.Fprintln(stderr, m)
	})
	res.after = contest.ProbeFlag()
	ended = errors.Join(ended, raw.close(), res.write(stdout))
	if cfg.html != "" {
		ended = errors.Join(ended, res.section().AddTo(cfg.html))
	}
	return ended
}

// enter returns gompi and the peers that are here, and why others are not.
func enter(ctx context.Context, cfg config, shop *contest.Workshop) (here []contest.Entrant, absent []string) {
	var env []string
	if cfg.transport != "" {
		env = []string{"GOMPI_TRANSPORT=" + cfg.transport}
	}
	peers, absent := shop.EnterAll(ctx, cfg.peers, "mpibench")
	here = []contest.Entrant{contest.Gompi(cfg.gompirun, cfg.bench, env...)}
	for _, e := range peers {
		here = append(here, e.WithArgs("-impl", e.Name))
	}
	return here, absent
}

// A rawFile takes every sample as it comes; without a name it is nothing.
type rawFile struct {
	f *os.File
	w *bufio.Writer
}

func createRaw(name string) (*rawFile, error) {
	if name == "" {
		return &rawFile{}, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	r := &rawFile{f: f, w: bufio.NewWriter(f)}
	fmt.Fprintln(r.w, report.SampleHeader)
	return r, nil
}

// write writes s at once, so that a run that is cut short leaves its rows.
func (r *rawFile) write(s report.Sample) error {
	if r.f == nil {
		return nil
	}
	fmt.Fprintf(r.w, "%d,%s\n", s.Round, strings.Join(s.Fields(), ","))
	return r.w.Flush()
}

func (r *rawFile) close() error {
	if r.f == nil {
		return nil
	}
	return errors.Join(r.w.Flush(), r.f.Close())
}
