package progress

import (
	"context"
	"time"
)

// maxSleep bounds the sleep of Close where the Source has no deadline.
const maxSleep = 50 * time.Millisecond

// Close ends the background, and then calls closed, instead of polling, until the result is true
// or ctx ends, in which case Close returns the cause. No other goroutine may wait any more.
func (p *Engine) Close(ctx context.Context, closed func() bool) error {
	p.closes = true // a grace may end while Close is unlocked
	p.endBackground()
	if p.graceTimer != nil {
		p.graceTimer.Stop()
	}
	for idle := 0; !closed(); idle++ {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case idle < p.yields:
			p.unlockWhile(p.cfg.Yield)
		case p.arm():
			p.sleepOnce(ctx)
			p.cfg.Parker.Disarm()
		}
	}
	return nil
}

// endBackground ends the background goroutine and waits for its end.
func (p *Engine) endBackground() {
	if p.background != nil {
		p.MakeReady(p.background)
		p.unlockWhile(func() { <-p.backgroundEnded })
	}
}

// sleepOnce sleeps until there is something to poll, or the Source's deadline has come.
func (p *Engine) sleepOnce(ctx context.Context) {
	limit := p.cfg.Source.Deadline()
	if limit == 0 {
		limit = maxSleep
	}
	p.Unlock()
	defer p.Lock()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-p.cfg.Parker.C():
	case <-ctx.Done():
	case <-t.C:
	}
}
