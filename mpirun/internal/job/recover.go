package job

import (
	"slices"
	"time"

	"gompi/internal/boot/agree"
	"gompi/internal/boot/wire"
	"gompi/internal/world"
	"gompi/mpirun/internal/ctl"
)

// A recovery is what a job knows of ranks that died and did not end it (-recover): what the others
// agree on, and which deaths they have answered. A death is answered when a Shrink has left the dead
// rank out.
type recovery struct {
	votes  agree.Table
	deaths []death
}

type death struct {
	rank     world.Rank
	cause    *cause
	answered bool
}

// survives reports whether the job goes on although a rank has failed. All ranks must have met, or
// some would wait in Init for ever.
func (j *Job) survives(m *ctl.Exited) bool {
	return j.spec.Recover && j.end.cause == nil && m.Joined && !m.PMI && j.came == j.nodes
}

// goOn notes a death that does not end the job.
func (j *Job) goOn(m *ctl.Exited, c *cause) {
	j.recover.deaths = append(j.recover.deaths, death{rank: world.Rank(m.Rank), cause: c})
	j.notef("%s: the job goes on without it (-recover)", c.text)
}

// voted takes a rank's vote.
func (j *Job) voted(h *host, m *ctl.Vote) {
	d, err := j.recover.votes.Vote(world.Rank(m.Rank), &m.Vote)
	if err != nil {
		j.notef("%s: %v", h.name, err)
	}
	if d != nil {
		j.decided([]*agree.Decision{d})
	}
}

// decided tells the ranks what they have agreed on.
func (j *Job) decided(all []*agree.Decision) {
	for _, d := range all {
		j.recover.answer(d)
		j.verbosef("%d ranks have agreed in %v %d of communicator %d, after %v; dead: %v",
			len(d.Living), d.Kind, d.Seq, d.Comm, time.Since(j.begun).Round(time.Millisecond), d.Dead)
		for _, h := range j.hosts {
			if !h.drained && slices.ContainsFunc(d.Living, func(v wire.Voter) bool { return slices.Contains(h.ranks, int(v.Rank)) }) {
				h.Send(&ctl.Outcome{Outcome: *d.Outcome})
			}
		}
	}
}

// answer notes which deaths a decision answers.
func (r *recovery) answer(d *agree.Decision) {
	if d.Kind != wire.Shrink || d.Differ != "" || len(d.Living) == 0 {
		return
	}
	for i := range r.deaths {
		if slices.Contains(d.Dead, r.deaths[i].rank) {
			r.deaths[i].answered = true
		}
	}
}

// unanswered returns why ranks died whose deaths nobody has answered.
func (r *recovery) unanswered() []*cause {
	var causes []*cause
	for i := range r.deaths {
		if !r.deaths[i].answered {
			causes = append(causes, r.deaths[i].cause)
		}
	}
	return causes
}
