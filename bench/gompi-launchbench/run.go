package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"gompi/bench/internal/contest"
	"gompi/bench/internal/hello"
)

func run(args []string, stdout, stderr io.Writer) int {
	cfg, err := parse(args)
	return contest.Main(cfg.set, err, usage, cfg.launch, stdout, stderr)
}

// launch measures and writes the report of what it has measured, also if it was
// interrupted.
func (cfg config) launch(ctx context.Context, stdout, stderr io.Writer) error {
	shop, err := contest.NewWorkshop()
	if err != nil {
		return err
	}
	defer shop.Close()
	if cfg.Hosts, err = shop.NewHosts(ctx, cfg.HostNames, cfg.RSH, slices.Concat(cfg.NPs, cfg.torchNP)); err != nil {
		return err
	}
	res := results{cfg: cfg}
	if res.groups, res.absent, err = cfg.enter(ctx, shop); err != nil {
		return err
	}
	ended := res.race(ctx, stderr)
	if ended == nil && cfg.restart > 0 && cfg.Hosts == nil {
		ended = res.restarts(ctx, stderr)
	}
	if cfg.CSV != "" {
		ended = errors.Join(ended, os.WriteFile(cfg.CSV, []byte(res.raw()), 0o644))
	}
	return errors.Join(ended, res.section().AddTo(cfg.HTML), res.write(stdout))
}

// A key is one cell: an entrant, and how many ranks.
type key struct {
	group, entrant string
	np             int
}

// A job is one run from start to finish.
type job struct {
	key
	round   int
	figures [numFigures]float64 // 0 where it has none
	err     error
}

// A figure is what is measured of a job.
type figure int

const (
	startToFinish figure = iota // ms, as all but the last
	firstLine
	insideInit
	importTorch
	peakMemory // kilobytes
	numFigures
)

var (
	helloFigures = []figure{startToFinish, firstLine, insideInit, peakMemory}
	torchFigures = []figure{startToFinish, firstLine, importTorch, insideInit, peakMemory}
)

// results are what was found.
type results struct {
	cfg    config
	groups []group
	absent []string
	jobs   []job
	agains []again
}

// race runs the entrants in turn, for each number of ranks, round after round.
func (r *results) race(ctx context.Context, progress io.Writer) error {
	for round := 1; round <= r.cfg.Rounds; round++ {
		for _, g := range r.groups {
			for _, np := range g.nps {
				for _, e := range g.entrants {
					out, err := e.job(np).Run(ctx, r.cfg.Limit)
					if ctx.Err() != nil {
						return context.Cause(ctx)
					}
					j := job{key: key{g.name, e.name, np}, round: round, figures: figuresOf(out), err: err}
					r.jobs = append(r.jobs, j)
					fmt.Fprintln(progress, j)
				}
			}
		}
	}
	return nil
}

func figuresOf(out contest.Outcome) [numFigures]float64 {
	printed := string(out.Stdout)
	return [numFigures]float64{
		startToFinish: millis(out.Took), firstLine: millis(out.First), insideInit: hello.Largest(printed, hello.InitMark),
		importTorch: hello.Largest(printed, hello.ImportMark), peakMemory: hello.Largest(printed, hello.PeakMark),
	}
}

func millis(d time.Duration) float64 { return d.Seconds() * 1e3 }

// An again is a job that was restarted: the time from the signal until all ranks
// had met again.
type again struct {
	entrant string
	signal  string
	round   int
	took    time.Duration
	err     error
}

// restarts kills and stops ranks. An entrant that has once failed to restart is not tried again: a
// failure takes the whole time limit.
func (r *results) restarts(ctx context.Context, progress io.Writer) error {
	dir, err := os.MkdirTemp("", "gompi-again-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for round := 1; round <= r.cfg.Rounds; round++ {
		for _, s := range signals {
			for _, g := range r.groups {
				for _, e := range g.entrants {
					if e.restart == nil || r.hopeless(e.name, s.name) {
						continue
					}
					took, err := restart(ctx, e.restart(r.cfg.restart, markerIn(dir, len(r.agains))), markerIn(dir, len(r.agains)), r.cfg.restart, s, r.cfg.Limit)
					if ctx.Err() != nil {
						return context.Cause(ctx)
					}
					a := again{e.name, s.name, round, took, err}
					r.agains = append(r.agains, a)
					fmt.Fprintln(progress, a)
				}
			}
		}
	}
	return nil
}

func (r *results) hopeless(entrant, signal string) bool {
	return slices.ContainsFunc(r.agains, func(a again) bool { return a.entrant == entrant && a.signal == signal && a.err != nil })
}
