package agent

import (
	"fmt"
	"slices"

	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/program"
	"gompi/mpirun/internal/stdio"
)

// With -spares, a host's segment and doorbells have places for replacements of dead ranks. The
// launcher orders their start.

// placeOf returns the rank of a spare place, by its local rank: the places of all nodes follow
// the job's ranks.
func (a *agent) placeOf(local int) int {
	return a.launch.Size + a.launch.Node*a.launch.Spares + local - len(a.launch.Ranks)
}

// replace starts a rank's replacement.
func (a *agent) replace(m *ctl.Replace) {
	first, ours := a.local[m.Original]
	if !ours || first >= len(a.launch.Ranks) || len(a.ranks) >= a.places() || m.Rank != a.placeOf(len(a.ranks)) {
		a.report(&ctl.Failed{Rank: m.Rank, Code: program.CannotStart,
			Text: fmt.Sprintf("no place for it instead of rank %d", m.Original)})
		return
	}
	r := a.launch.Ranks[first]
	r.Rank = m.Rank
	p := a.add(r)
	p.original, p.invite, p.unbriefed = first, &m.Invite, true
	prog := a.preparation.Programs[r.Program]
	a.loop.Aside(func() func() {
		prog.Touch()
		return func() { a.startReplacement(p, prog) }
	})
}

func (a *agent) startReplacement(p *process, prog *program.Program) {
	if a.end.ordered {
		return
	}
	err := a.spawn(p, prog, a.variables(p, prog))
	a.affinity.Bind(nil)
	if err != nil {
		p.ended = true
		a.segment.SetEnded(p.local())
		a.report(&ctl.Failed{Rank: p.Rank.Rank, Code: program.Status(err), Text: err.Error()})
		return
	}
	a.alive++
	if p.stdin >= 0 && a.feed.ended {
		a.closeInput(p)
	}
}

// brief sends a replacement the cards of all ranks, and the dead ranks.
func (a *agent) brief(m *ctl.Brief) {
	i, ours := a.local[m.Rank]
	if !ours {
		return
	}
	p := a.ranks[i]
	p.unbriefed = false
	a.send(p, m.Frames)
	a.segment.Bump()
}

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
