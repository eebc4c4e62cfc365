package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"gompi/bench/internal/contest"
	"gompi/internal/cli"
)

// run returns the exit status: 0, 1 after an error, 2 if the arguments make no
// sense. A peer that is not here or fails is said in the report, and no error.
func run(args []string, stdout, stderr io.Writer) int {
	cfg, err := parse(args)
	if errors.Is(err, cli.ErrHelp) {
		fmt.Fprint(stdout, usage, cfg.set.FlagUsages())
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "gompi-launchbench: %v (gompi-launchbench -h lists the flags)\n", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := launch(ctx, cfg, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "gompi-launchbench: %v\n", err)
		return 1
	}
	return 0
}

// launch measures and writes the report of what it has measured, also if it was
// interrupted.
func launch(ctx context.Context, cfg config, stdout, stderr io.Writer) error {
	shop, err := contest.NewWorkshop()
	if err != nil {
		return err
	}
	defer shop.Close()
	res := newResults(cfg)
	res.enter(ctx, shop)
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

// enter adds the peers that are here, and notes why others are not.
func (r *results) enter(ctx context.Context, shop *contest.Workshop) {
	for _, c := range r.cfg.peers {
		e, err := shop.Enter(ctx, c, "mpihello")
		if err != nil {
			r.absent = append(r.absent, fmt.Sprintf("%s: %v", c.Name, err))
			continue
		}
		r.entrants = append(r.entrants, e)
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
