package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"gompi/bench/internal/contest"
	"gompi/internal/cli"
)

func run(args []string, stdout, stderr io.Writer) int {
	return contest.Program{Name: "gompi-launchbench", Usage: usage, Parse: func(args []string) (*cli.Set, contest.Measure, error) {
		cfg, err := parse(args)
		return cfg.set, cfg.launch, err
	}}.Main(args, stdout, stderr)
}

// launch measures and writes the report of what it has measured, also if it was
// interrupted.
func (cfg config) launch(ctx context.Context, stdout, stderr io.Writer) error {
	shop, err := contest.NewWorkshop()
	if err != nil {
		return err
	}
	defer shop.Close()
	res := newResults(cfg)
	peers, absent := shop.EnterAll(ctx, cfg.peers, "mpihello")
	res.entrants, res.absent = append(res.entrants, peers...), absent
	ended := res.race(ctx, stderr)
	if ended == nil {
		ended = res.weigh(ctx)
	}
	if cfg.csv != "" {
		ended = errors.Join(ended, os.WriteFile(cfg.csv, []byte(res.raw()), 0o644))
	}
	return errors.Join(ended, res.write(stdout))
}

// A key is one cell: a launcher and a number of ranks.
type key struct {
	entrant string
	np      int
}

// A job is one run from start to finish.
type job struct {
	key
	round int
	took  time.Duration
	err   error
}

// results are what was found.
type results struct {
	cfg      config
	entrants []contest.Entrant // gompi first
	absent   []string
	jobs     []job
	peak     map[key]int // kilobytes of the largest rank
}

func newResults(cfg config) *results {
	return &results{
		cfg:      cfg,
		entrants: []contest.Entrant{contest.Gompi(cfg.gompirun, cfg.hello)},
		peak:     make(map[key]int),
	}
}

// race runs the entrants in turn, for each number of ranks, round after round.
func (r *results) race(ctx context.Context, progress io.Writer) error {
	for round := 1; round <= r.cfg.rounds; round++ {
		for _, np := range r.cfg.nps {
			for _, e := range r.entrants {
				out, err := e.Command(np, runtime.NumCPU()).Run(ctx, r.cfg.limit)
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				j := job{key: key{e.Name, np}, round: round, took: out.Took, err: err}
				r.jobs = append(r.jobs, j)
				r.peak[j.key] = max(r.peak[j.key], peaks(string(out.Stdout)))
				fmt.Fprintln(progress, j)
			}
		}
	}
	return nil
}

// weigh finds the memory of gompi's ranks, which hello does not tell: by jobs of
// this very program that do the same.
func (r *results) weigh(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	e := contest.Gompi(r.cfg.gompirun, self).WithArgs(asRank)
	for _, np := range r.cfg.nps {
		out, err := e.Command(np, runtime.NumCPU()).Run(ctx, r.cfg.limit)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			r.absent = append(r.absent, fmt.Sprintf("memory of gompi, np=%d: %v", np, err))
		}
		r.peak[key{e.Name, np}] = peaks(string(out.Stdout))
	}
	return nil
}
