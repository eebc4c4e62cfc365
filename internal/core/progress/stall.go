package progress

import "time"

// StallAfter is the time that a goroutine waits before Stalled is called.
const StallAfter = 200 * time.Millisecond

// A stall is the timer of a wait, set when the wait first blocks.
type stall struct {
	timer    *time.Timer
	fired    bool
	notified bool      // the Owner's Stalled was called
	since    time.Time // when the driver first looked at the clock, or notice was last called
}

// notice reports a wait that has lasted for StallAfter to the Owner, once, and to the Source. These
// may post or poll, which is safe: w's goroutine drives or passes the drive next.
func (p *Engine) notice(w *Waiter, s *stall) {
	if !s.fired {
		return
	}
	s.fired, s.since = false, time.Now()
	p.recheckSpin()
	if !w.ready && w.owner != nil && !s.notified {
		s.notified = true
		w.owner.Stalled()
	}
	p.cfg.Source.Stalled()
	switch {
	case s.timer == nil:
	case p.cfg.Watch:
		s.timer.Reset(StallAfter)
	default:
		s.timer.Stop() // rings may have fired, not the timer
	}
}

// rings reports whether StallAfter has passed for a driver that never blocks, because messages for
// other goroutines keep coming.
func (s *stall) rings() bool {
	switch now := time.Now(); {
	case s.since.IsZero():
		s.since = now
	case now.Sub(s.since) >= StallAfter:
		s.fired = true
	}
	return s.fired
}

func (s *stall) after(p *Engine, w *Waiter) <-chan time.Time {
	if w == p.background && !p.cfg.Watch {
		return nil // its Stalled reports nothing
	}
	switch {
	case s.timer != nil: // set already
	case w.timer == nil:
		w.timer = time.NewTimer(StallAfter)
	default:
		w.timer.Reset(StallAfter)
	}
	s.timer = w.timer
	return s.timer.C
}

func (s *stall) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}
