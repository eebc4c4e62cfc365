package job

import (
	"slices"
	"time"

	"gompi/internal/boot/agree"
	"gompi/internal/boot/wire"
	"gompi/internal/world"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/failure"
	"gompi/mpirun/internal/plan"
)

// A recovery is the state of a job that survives deaths of ranks (-recover): the agreements of
// the others, the deaths and their answers, and the replacements. A death is answered when a
// Shrink or Restore has left the dead rank out.
type recovery struct {
	votes  agree.Table
	deaths []death
	died   []byte // frames of all deaths, for replacements
	alive  int    // number of living ranks

	plan.Spares
	nodes []*host // by node
}

type death struct {
	rank     world.Rank
	cause    *failure.Cause
	answered bool
}

func (r *recovery) prepare(nodes []*host, nodeOf []int, spares int) {
	r.Prepare(nodeOf, len(nodes), spares)
	r.nodes, r.alive, r.votes.Ranks = nodes, len(nodeOf), r.Ranks()
}

// survives reports whether the job continues after a rank's failure. All ranks must have met, or
// some would wait in Init forever.
func (j *Job) survives(m *ctl.Exited) bool {
	late := j.recover.Replaces(m.Rank)
	return j.spec.Recover && j.end.cause == nil && (m.Joined && !m.PMI || late) && j.cardHosts == j.nodes
}

// survive notes a death that does not end the job. The death of a replacement needs no answer
// before ranks have counted on it.
func (j *Job) survive(m *ctl.Exited, c *failure.Cause) {
	counts := j.recover.votes.Joined(world.Rank(m.Rank))
	j.recover.deaths = append(j.recover.deaths, death{rank: world.Rank(m.Rank), cause: c, answered: !counts})
	j.notef("%s: the job continues without it (-recover)", c.Text)
}

// noteUnused reports a replacement that has ended well before Init: the next one takes another
// place.
func (j *Job) noteUnused(h *host, m *ctl.Exited) {
	if j.recover.Replaces(m.Rank) && !m.Joined && j.end.cause == nil {
		j.notef("%s on %s exited with status 0 (pid %d) and never called Init: it has used up a spare place",
			j.recover.Name(m.Rank), h.Name(), m.PID)
	}
}

// voted takes a rank's vote.
func (j *Job) voted(h *host, rank world.Rank, v *wire.Vote) {
	d, err := j.recover.votes.Vote(rank, v)
	if err != nil {
		j.notef("%s: %v", h.Name(), err)
	}
	j.decided(d)
	j.replace()
}

// endedRank handles the consequences of a rank's end.
func (j *Job) endedRank(rank world.Rank, died bool) {
	j.decided(j.recover.votes.Ended(rank, died)...)
	j.replace()
	if j.recover.alive--; j.recover.alive > 0 {
		return
	}
	j.endForDeaths()
	if j.spec.Policy.Spares > 0 || j.spec.KeepChildren {
		j.broadcast(&ctl.NoMore{})
	}
}

// decided notifies the ranks of their agreements.
func (j *Job) decided(all ...*agree.Decision) {
	for _, d := range all {
		if d == nil {
			continue
		}
		j.recover.answer(d)
		for i := range d.Replaced {
			d.Replaced[i].Card = j.cards[d.Replaced[i].By]
		}
		j.verbosef("%d ranks have agreed in %v %d of communicator %d, after %v; dead: %v",
			len(d.Living), d.Kind, d.Seq, d.Comm, time.Since(j.begun).Round(time.Millisecond), d.Dead)
		for node, h := range j.recover.nodes {
			here := func(v wire.Voter) bool { return j.recover.Node(int(v.Rank)) == node }
			if !h.drained && slices.ContainsFunc(d.Living, here) {
				h.Send(ctl.NewToRanks(d.Outcome))
			}
		}
	}
}

// answer notes the deaths that a decision answers.
func (r *recovery) answer(d *agree.Decision) {
	if d.Kind == wire.Agree || d.Differ != "" || d.Failed != "" || len(d.Living) == 0 {
		return
	}
	for i := range r.deaths {
		if slices.Contains(d.Dead, r.deaths[i].rank) {
			r.deaths[i].answered = true
		}
	}
}

// endForDeaths ends the job, after all ranks, if no call has answered some deaths.
func (j *Job) endForDeaths() {
	for i := range j.recover.deaths {
		if d := &j.recover.deaths[i]; !d.answered {
			j.endFor(d.cause)
		}
	}
}

// replace starts the ranks that others wait for: all that a Restore needs, or none.
func (j *Job) replace() {
	for _, wants := range j.recover.votes.Wanted() {
		if j.end.cause != nil {
			return
		}
		if why := j.recover.noPlaces(wants); why != "" {
			j.decided(j.recover.votes.Refuse(&wants[0], why))
			continue
		}
		for i := range wants {
			j.assign(&wants[i])
		}
	}
}

// noPlaces explains why the wanted ranks cannot all be replaced, "" if they can.
func (r *recovery) noPlaces(wants []agree.Want) (why string) {
	need := make([]int, len(r.nodes))
	for i := 0; i < len(wants) && why == ""; i++ {
		first := r.Original(int(wants[i].Dead))
		node := r.Node(first)
		need[node]++
		why = r.Lacks(node, need[node], first, r.nodes[node].Name(), r.nodes[node].drained)
	}
	return why
}

// assign starts a rank in a spare place.
func (j *Job) assign(w *agree.Want) {
	r := &j.recover
	first := r.Original(int(w.Dead))
	node := r.Node(first)
	rank := r.Next(node)
	if !r.votes.Assign(w, world.Rank(rank)) {
		return
	}
	r.Take(first)
	r.alive++
	r.nodes[node].Send(&ctl.Replace{Rank: rank, Original: first, Invite: w.Invite})
}

// introduce takes the card of a replacement, and answers with the other ranks' knowledge.
func (j *Job) introduce(h *host, rank int, card []byte) {
	if !j.recover.Replaces(rank) {
		j.notef("%s: a card of rank %d, which replaces none", h.Name(), rank)
		return
	}
	j.cards[rank] = card
	h.Send(&ctl.Brief{Rank: rank, Frames: append(wire.Append(nil, &wire.Cards{Data: j.cards}), j.recover.died...)})
}
