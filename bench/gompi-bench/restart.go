package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"gompi/bench/internal/report"
	"gompi/bench/internal/row"
	"gompi/bench/internal/runner"
)

// signals are what the last rank of a job gets, by the names of the operations in rows.
var signals = []struct {
	name   string
	signal syscall.Signal
}{{"kill -9", syscall.SIGKILL}, {"kill -STOP", syscall.SIGSTOP}}

// restartAll kills and stops ranks of the jobs that start again. An entrant that has once failed to
// is not tried again: a failure takes the whole time limit.
func (l *launch) restartAll(ctx context.Context, groups []group, progress io.Writer) error {
	hopeless := make(map[string]bool)
	n := 0
	for round := 1; round <= l.Rounds; round++ {
		for _, s := range signals {
			for _, g := range groups {
				for _, e := range g.restarts {
					op := g.name + "/" + s.name
					if hopeless[e.Name+op] {
						continue
					}
					n++
					marker := filepath.Join(l.Dir(), fmt.Sprintf("again.%d", n))
					took, err := restart(ctx, e.Start(l.restart, marker), marker, l.restart, s.signal, l.Limit)
					if ctx.Err() != nil {
						return context.Cause(ctx)
					}
					if err != nil {
						hopeless[e.Name+op] = true
						l.Miss(fmt.Sprintf("%s again after %s, round %d: %v", e.Name, s.name, round, err))
						continue
					}
					fmt.Fprintf(progress, "round %d of %d: %s again after %s: %v\n", round, l.Rounds, e.Name, s.name, took.Round(time.Millisecond))
					if err := l.take(round, op, e.Name, l.restart, micros(took)); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// restartTable says how long it took until all ranks were there again.
func (l *launch) restartTable(g group, cells []row.Cell) report.Table {
	names := runner.Names(g.restarts)
	lines := [][]string{append([]string{"after"}, names...)}
	for _, s := range signals {
		c := row.Find(cells, g.name+"/"+s.name, l.restart)
		if len(c.Rows) == 0 {
			continue
		}
		line := []string{s.name}
		for _, name := range names {
			line = append(line, in(c, name, 1e-3))
		}
		lines = append(lines, line)
	}
	return report.Table{Left: 1, Lines: lines,
		Title: fmt.Sprintf("Until all of %d ranks were there again after the last was hit (%s; \"missing\": not within %v), ms:", l.restart, g.name, l.Limit)}
}

// restart runs a job of np ranks. When all are ready it creates the marker file, by which later
// ranks know that they were restarted. It then sends the last rank a signal, and returns how long
// it took until all ranks had met again.
func restart(ctx context.Context, j runner.Job, marker string, np int, signal syscall.Signal, limit time.Duration) (time.Duration, error) {
	w := watch{np: np, marker: marker, signal: signal}
	j = slices.Clone(j)
	j[0].Line = w.line
	_, err := j.Run(ctx, limit)
	switch {
	case w.err != nil:
		return 0, w.err
	case w.again == np: // how it ended after that is of no interest
		return w.took, nil
	case errors.Is(err, runner.ErrTimeLimit): // what it says when it is ended is of none either
		return 0, fmt.Errorf("%w of %v", runner.ErrTimeLimit, limit)
	case err != nil:
		return 0, err
	}
	return 0, errors.New("it ended without a restart")
}

// A watch follows what the ranks of a job print.
type watch struct {
	np     int
	marker string
	signal syscall.Signal

	ready  int // ranks of the first start
	again  int // of the second
	victim int // process of the last rank
	begun  time.Time
	took   time.Duration
	err    error
}

func (w *watch) line(s string) {
	var rank, pid int
	if !strings.HasPrefix(s, readyMark) {
		return
	}
	if _, err := fmt.Sscanf(s, readyMark+"%d %d", &rank, &pid); err != nil || pid < 2 {
		return
	}
	if !w.begun.IsZero() {
		if w.again++; w.again == w.np {
			w.took = time.Since(w.begun)
		}
		return
	}
	if rank == w.np-1 {
		w.victim = pid
	}
	if w.ready++; w.ready == w.np && w.victim != 0 {
		w.strike()
	}
}

// strike makes the marker and sends the signal.
func (w *watch) strike() {
	if err := os.WriteFile(w.marker, nil, 0o600); err != nil {
		w.err = err
		return
	}
	w.begun = time.Now()
	w.err = syscall.Kill(w.victim, w.signal)
}
