package mpirun

import (
	"fmt"
	"strings"
	"time"

	"gompi/mpirun/internal/attach"
	"gompi/mpirun/internal/ctl"
)

// about describes the job for who has to tell it from others.
func (j *job) about() string {
	var programs []string
	for _, p := range j.spec.Programs {
		programs = append(programs, fmt.Sprintf("%.80q", strings.Join(p.Argv, " ")))
	}
	return fmt.Sprintf("-np %d %s, for %v", len(j.plan.Ranks), strings.Join(programs, " : "), time.Since(j.begun).Round(time.Second))
}

// askedFor passes a question on to the agent of the rank's host, which knows which
// process has joined in the rank's place.
func (j *job) askedFor(q attach.Question) {
	if q.Rank == attach.AboutJob {
		q.Answer(attach.Whereabouts{About: j.about()})
		return
	}
	for _, l := range j.links {
		for _, r := range l.ranks {
			if r == q.Rank && !l.drained {
				l.asking = append(l.asking, q)
				l.Send(&ctl.Ask{})
				return
			}
		}
	}
	q.Answer(attach.Whereabouts{Err: fmt.Sprintf("rank %d does not run: the job has %d ranks", q.Rank, len(j.plan.Ranks))})
}

// tellWhere answers the questions about ranks of l.
func (j *job) tellWhere(l *link, m *ctl.Doing) {
	for _, q := range l.asking {
		w := attach.Whereabouts{Err: fmt.Sprintf("rank %d on %s has ended", q.Rank, l.host)}
		for _, r := range m.Ranks {
			if r.Rank == q.Rank {
				w = attach.Whereabouts{Host: l.host, PID: r.PID, Login: l.agent.Login}
				if !l.here() && w.Login == nil {
					w.Err = fmt.Sprintf("rank %d is process %d on %s, where gompirun did not log in: run the debugger there", q.Rank, r.PID, l.host)
				}
			}
		}
		q.Answer(w)
	}
	l.asking = nil
}
