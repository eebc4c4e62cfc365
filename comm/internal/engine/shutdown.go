package engine

import (
	"context"
	"time"
)

// Shutdown closes all transports: what was sent is delivered, at most until ctx
// ends; then it returns the cause, and what is left is dropped. No Channel is
// used any more.
func (e *Engine) Shutdown(ctx context.Context) error {
	e.lock()
	defer e.unlock()
	e.doomed = true
	e.judgeSuspects()
	e.dismissBackground()
	if e.timer != nil {
		e.timer.Stop()
	}
	for idle := 0; !e.shut(false); idle++ {
		switch {
		case ctx.Err() != nil:
			e.shut(true)
			return context.Cause(ctx)
		case idle < e.yields:
			e.breathe(e.cfg.Yield)
		case e.arm():
			e.doze(ctx)
			e.cfg.Parker.Disarm()
		}
	}
	return nil
}

// dismissBackground ends the background waiter, and waits until it touches the
// Parker no more.
func (e *Engine) dismissBackground() {
	if e.bg != nil {
		e.rouse(e.bg)
		e.breathe(func() { <-e.bgEnded })
	}
}

// shut asks all transports to close and reports whether they have.
func (e *Engine) shut(force bool) bool {
	all := true
	for _, t := range e.transports {
		all = t.Close(force) && all
	}
	return all
}

// doze sleeps until there is something to poll, or a transport's time has come.
func (e *Engine) doze(ctx context.Context) {
	limit := e.deadline()
	if limit == 0 {
		limit = 50 * time.Millisecond
	}
	e.unlock()
	defer e.lock()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-e.cfg.Parker.C():
	case <-ctx.Done():
	case <-t.C:
	}
}
