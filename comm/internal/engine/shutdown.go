package engine

import "context"

// Shutdown closes all transports. It delivers the frames that were sent. If ctx ends first, it
// drops the rest and returns the cause. No Channel may be used any more.
func (e *Engine) Shutdown(ctx context.Context) error {
	e.progress.Lock()
	defer e.progress.Unlock()
	e.live.EndJob()
	err := e.progress.Close(ctx, func() bool {
		if e.live.Pending() {
			e.live.News() // of a rank for which a transport waits
		}
		return e.shut(false)
	})
	if err != nil {
		e.shut(true)
	}
	return err
}

// shut asks all transports to close and reports whether they have.
func (e *Engine) shut(force bool) bool {
	all := true
	for _, t := range e.transports {
		all = t.Close(force) && all
	}
	return all
}
