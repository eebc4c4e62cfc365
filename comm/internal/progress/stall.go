package progress

import "time"

// StallAfter is how long a goroutine waits before Stalled is called.
const StallAfter = 200 * time.Millisecond

// A stall is the timer of one wait, set when the wait first blocks.
type stall struct {
	timer *time.Timer
	fired bool
	told  bool      // the Owner knows
	since time.Time // when its driver looked at the clock first, or the wait was last noticed
}

// notice tells of a wait that has lasted long. That may post or poll: whatever w does next, it
// drives or passes the drive.
func (p *Engine) notice(w *Waiter, s *stall) {
	if !s.fired {
		return
	}
	s.fired, s.since = false, time.Now()
	p.judge()
	if !w.ready && w.owner != nil {
		s.told = true
		w.owner.Stalled()
	}
	p.cfg.Source.Stalled()
	switch {
	case s.timer == nil:
	case p.cfg.Watch:
		s.timer.Reset(StallAfter)
	default:
		s.timer.Stop() // it may not have been what rang
	}
}

// rings reports whether StallAfter has gone by for a driver that messages of others keep
// from blocking.
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
		return nil // it has nothing to tell anybody
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
