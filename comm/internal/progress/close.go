package progress

import (
	"context"
	"time"
)

// mostDoze bounds the sleep of Close where the Source has no deadline.
const mostDoze = 50 * time.Millisecond

// Close ends the background, and then waits until closed, which takes the place of polling,
// reports true, or ctx ends: then it returns the cause. Nobody else waits any more.
func (p *Engine) Close(ctx context.Context, closed func() bool) error {
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
			p.doze(ctx)
			p.cfg.Parker.Disarm()
		}
	}
	return nil
}

// endBackground ends the background, and waits until it touches the Parker no more.
func (p *Engine) endBackground() {
	if p.background != nil {
		p.MakeReady(p.background)
		p.unlockWhile(func() { <-p.backgroundEnded })
	}
}

// doze sleeps until there is something to poll, or the Source's deadline has come.
func (p *Engine) doze(ctx context.Context) {
	limit := p.cfg.Source.Deadline()
	if limit == 0 {
		limit = mostDoze
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
