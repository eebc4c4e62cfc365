package commtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"gompi/internal/boot"
	"gompi/internal/seg"
	"gompi/internal/world"
)

// stallTime is the time for which all ranks wait before a report on stderr, once.
const stallTime = 10 * time.Second

// Waiting ranks are ended mostGrace before the end of a test's time, or a tenth of that time
// before, if that is less.
const mostGrace = 5 * time.Second

var errStuck = errors.New("the ranks wait for each other, and the test's time is almost up")

// A watch observes the calls in which ranks wait, as gompirun's stall report does. While some rank
// is in no call, because the rank computes or waits for anything else, the watch reports nothing:
// that rank may be slow.
type watch struct {
	*job
	t        testing.TB
	deadline time.Time // zero if there is none
	grace    time.Duration
	flights  *seg.Segment
}

// watch starts the watch over ranks that have not started yet. cancel ends the ranks; stop ends the
// watch.
func (j *job) watch(t testing.TB, cancel context.CancelCauseFunc) (stop func()) {
	deadline, ok := deadlineOf(t)
	flights, err := seg.InMemory(len(j.boots))
	if !ok || err != nil {
		return func() {}
	}
	for rank, b := range j.boots {
		b.(*boot.Member).Record(flights.Rank(world.LocalRank(rank)))
	}
	w := &watch{j, t, deadline, min(mostGrace, time.Until(deadline)/10), flights}
	done := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() { w.run(done, cancel) })
	return func() { close(done); ended.Wait() }
}

// deadlineOf returns the end of t's time, zero without a limit. ok is false for a test in a
// testing/synctest bubble, which notices a deadlock itself, and for a t without deadlines.
func deadlineOf(t testing.TB) (deadline time.Time, ok bool) {
	d, ok := t.(interface{ Deadline() (time.Time, bool) })
	if !ok {
		return time.Time{}, false
	}
	defer func() {
		if recover() != nil { // Deadline refuses to be called in a bubble
			ok = false
		}
	}()
	deadline, _ = d.Deadline()
	return deadline, true
}

// run looks at growing intervals, and once more shortly before the deadline.
func (w *watch) run(done <-chan struct{}, cancel context.CancelCauseFunc) {
	for pause, reported := stallTime/2, false; ; pause *= 2 {
		last := !w.deadline.IsZero() && time.Until(w.deadline)-w.grace <= pause
		if last {
			pause = time.Until(w.deadline) - w.grace
		}
		select {
		case <-done:
			return
		case <-time.After(pause):
		}
		lines, since := w.waits()
		switch {
		case last && since >= w.grace:
			w.t.Errorf("%v:\n%s", errStuck, lines)
			cancel(errStuck)
			return
		case last:
			return
		case since >= stallTime && !reported:
			reported = true
			fmt.Fprintf(os.Stderr, "%s: the ranks wait for each other:\n%s\n", w.t.Name(), lines)
		}
	}
}

// waits returns the current calls of the ranks that have not returned, and the time for which all
// of them have waited, 0 if a rank does not wait.
func (w *watch) waits() (lines string, since time.Duration) {
	var text []string
	for rank := range w.boots {
		if w.over[rank].Load() {
			continue
		}
		flight := world.LocalRank(rank)
		c, at := seg.Running(w.flights.Calls(flight))
		if c == nil || c.Start == 0 {
			return "", 0
		}
		site := w.flights.Site(flight, at)
		if site == "" {
			return "", 0 // a background call, for which no goroutine waits
		}
		d := time.Duration(seg.Now() - c.Start)
		if text == nil || d < since {
			since = d
		}
		text = append(text, fmt.Sprintf("rank %d is in %s at %s for %v", rank, c.Text(), site,
			d.Round(100*time.Millisecond)))
	}
	return strings.Join(text, "\n"), since
}
