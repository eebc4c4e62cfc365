package engine

import "context"

// Shutdown closes all transports: what was sent is delivered, at most until ctx
// ends; then it returns the cause, and what is left is dropped. No Channel is
// used any more.
func (e *Engine) Shutdown(ctx context.Context) error {
	e.progress.Lock()
	defer e.progress.Unlock()
	e.doomed = true
	e.judgeSuspects()
	err := e.progress.Close(ctx, func() bool { return e.shut(false) })
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
