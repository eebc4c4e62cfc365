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
		return e.peers.Close(false)
	})
	if err != nil {
		e.peers.Close(true)
	}
	return err
}
