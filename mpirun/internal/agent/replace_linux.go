package agent

import (
	"fmt"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/program"
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
