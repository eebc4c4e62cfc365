package agent

import (
	"fmt"
	"slices"

	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/mpirun/internal/stdio"
)

// The arena of a rank that died while the job continues is freed when no rank of the host touches
// that memory. Each rank reports that after learning of the death and closing the communicators
// that hold the dead rank: internal/core/detach.go. A rank that starts later learns of the death
// before joining any communicator, and reports, too.

// reclaims are this host's dead ranks with arenas to free, and the indices of the ranks that have
// detached from each.
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
				fmt.Fprintf(stdio.Stderr, "gompirun: agent: rank %d has died, and its shared memory is not freed: %v\n",
					dead.Rank.Rank, err)
			}
		})
	}
}

// touches reports whether p may touch the memory of other ranks: it lives, and has not closed its
// communicators.
func (a *agent) touches(p *process) bool {
	return !p.ended && a.segment.State(p.local()) < seg.Closed
}
