package agent

import (
	"fmt"
	"slices"

	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/mpirun/internal/stdio"
)

// The arena of a rank that died while the job continues is freed when no rank of the host touches
// it any more. Each reports so, once it has been notified of the death and has closed the
// communicators that hold the dead rank: internal/core/detach.go. One that starts later is notified
// of the death before it joins any communicator, and reports so, too.

// reclaims are the dead ranks of this host whose arenas are not freed yet, and the ranks that have
// detached from each, by their index.
type reclaims map[*process]map[int]bool

// lostRank notes that p has died.
func (a *agent) lostRank(p *process) {
	if a.dead == nil {
		a.dead = reclaims{}
	}
	a.dead[p] = map[int]bool{}
}

// detached notes that p touches the arena of rank no more.
func (a *agent) detached(p *process, rank world.Rank) {
	for dead, by := range a.dead {
		if dead.Rank.Rank == int(rank) {
			by[p.index] = true
		}
	}
	a.reclaim()
}

// reclaim frees the arenas that no living rank touches.
func (a *agent) reclaim() {
	for dead, by := range a.dead {
		if slices.ContainsFunc(a.ranks, func(p *process) bool { return a.touches(p) && !by[p.index] }) {
			continue
		}
		delete(a.dead, dead)
		a.releases.Go(func() { // the launcher waits for the agent's heartbeat meanwhile
			if err := a.segment.FreeArena(dead.local()); err != nil {
				fmt.Fprintf(stdio.Stderr, "gompirun: agent: rank %d has died, and its shared memory is not freed: %v\n", dead.Rank.Rank, err)
			}
		})
	}
}

// touches reports whether p may touch the memory of other ranks: it lives, and has not closed its
// communicators.
func (a *agent) touches(p *process) bool {
	return !p.ended && a.segment.State(p.local()) < seg.Closed
}
