package engine

import "gompi/internal/world"

// Detach gives up what a rank that has died shares with this one, and reports whether it has: not
// if the job ends. From then on no transport reads or writes memory of that rank, and every Channel
// that holds it is broken, also one that is opened later. Collectives through shared memory that
// run may still touch that rank's.
func (e *Engine) Detach(rank world.Rank) bool {
	e.progress.Lock()
	defer e.progress.Exit()
	if e.live.JobEnds() {
		return false
	}
	// If it died after it had left, Channels go on without it, but may not any more.
	if death := e.live.TakeDeath(rank); death != nil {
		p := e.peers.Peer(rank)
		p.Lost = death
		for _, ch := range e.channels {
			ch.dismiss(p, true)
		}
	}
	e.peers.Detach(rank)
	return true
}
