package engine

import "time"

// This file is what a rank does that has waited for long.

// stallAfter is how long a rank waits before it acts on that: in a collective it tells those
// it waits for what it waits in, and it asks whether they are still there.
const stallAfter = 200 * time.Millisecond

// notice acts on a wait that has lasted long.
func (e *Engine) notice(w *Waiter, stall *alarm) {
	if !stall.fired {
		return
	}
	stall.fired, stall.since = false, time.Now()
	e.judge()
	if !w.ready.Load() {
		e.record(w)
		switch {
		case w.round != nil:
			w.round.stalled()
		case w.vigil != nil:
			w.vigil.stalled()
		}
	}
	if e.cfg.Left != nil {
		e.dismissLeft()
	}
	e.askAwaited()
	switch {
	case stall.timer == nil:
	case e.cfg.Left == nil:
		stall.timer.Stop() // it may not have been what rang
	default:
		stall.timer.Reset(stallAfter)
	}
	e.handOn() // what was looked at has to be armed again
}

// An alarm is the timer of one wait, set when the wait first blocks.
type alarm struct {
	timer *time.Timer
	fired bool
	since time.Time // when its driver looked at the clock first, or the wait was last noticed
}

// rings reports whether stallAfter has gone by for a driver that messages of others keep
// from blocking.
func (a *alarm) rings() bool {
	switch now := time.Now(); {
	case a.since.IsZero():
		a.since = now
	case now.Sub(a.since) >= stallAfter:
		a.fired = true
	}
	return a.fired
}

func (a *alarm) after(e *Engine, w *Waiter) <-chan time.Time {
	if w.quiet && w.round == nil && w.vigil == nil && e.cfg.Left == nil {
		return nil // the background waiter has nothing to tell anybody
	}
	switch {
	case a.timer != nil: // set already
	case w.timer == nil:
		w.timer = time.NewTimer(stallAfter)
	default:
		w.timer.Reset(stallAfter)
	}
	a.timer = w.timer
	return a.timer.C
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}
