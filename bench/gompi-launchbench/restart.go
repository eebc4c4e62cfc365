package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"gompi/bench/internal/hello"

	"gompi/bench/internal/contest"
)

// A blow is what happens to a rank.
type blow struct {
	name   string
	signal syscall.Signal
}

var signals = []blow{{"kill -9", syscall.SIGKILL}, {"kill -STOP", syscall.SIGSTOP}}

// restart runs a job of np ranks. When all are ready it creates the marker file, by which later
// ranks know that they were restarted. It then sends the last rank a signal, and returns how long
// it took until all ranks had met again.
func restart(ctx context.Context, j contest.Job, marker string, np int, b blow, limit time.Duration) (time.Duration, error) {
	w := watch{np: np, marker: marker, signal: b.signal}
	j[0].Line = w.line
	_, err := j.Run(ctx, limit)
	switch {
	case w.err != nil:
		return 0, w.err
	case w.again == np: // how it ended after that is of no interest
		return w.took, nil
	case errors.Is(err, contest.ErrTimeLimit): // what it says when it is ended is of none either
		return 0, fmt.Errorf("%w of %v", contest.ErrTimeLimit, limit)
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
	if !strings.HasPrefix(s, hello.ReadyMark) {
		return
	}
	if _, err := fmt.Sscanf(s, hello.ReadyMark+"%d %d", &rank, &pid); err != nil || pid < 2 {
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
