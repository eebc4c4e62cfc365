package job

import (
	"fmt"
	"strings"
	"time"

	"gompi/mpirun/internal/attach"
	"gompi/mpirun/internal/ctl"
)

// about describes the job, for a user who has to choose among several.
func (j *Job) about() string {
	var programs []string
	for _, p := range j.spec.Programs {
		programs = append(programs, fmt.Sprintf("%.80q", strings.Join(p.Argv, " ")))
	}
	return fmt.Sprintf("-np %d %s, for %v", len(j.plan.Ranks), strings.Join(programs, " : "), time.Since(j.begun).Round(time.Second))
}

// askedFor forwards a question to the agent of the rank's host, which knows the rank's process.
func (j *Job) askedFor(q attach.Question) {
	if q.Rank == attach.AboutJob {
		q.Answer(attach.Whereabouts{About: j.about()})
		return
	}
	for _, h := range j.hosts {
		for _, r := range h.ranks {
			if r == j.recover.original(q.Rank) && !h.drained {
				h.asking = append(h.asking, q)
				h.Send(&ctl.Ask{})
				return
			}
		}
	}
	q.Answer(attach.Whereabouts{Err: fmt.Sprintf("rank %d does not run: the job has %d ranks", q.Rank, len(j.plan.Ranks))})
}

// answerQuestions answers the questions about ranks of h.
func (j *Job) answerQuestions(h *host, m *ctl.Doing) {
	for _, q := range h.asking {
		w := attach.Whereabouts{Err: fmt.Sprintf("rank %d on %s has ended", q.Rank, h.name)}
		for _, r := range m.Ranks {
			if r.Rank == j.recover.current(q.Rank) {
				w = attach.Whereabouts{Host: h.name, PID: r.PID, Login: h.started.Login}
				if !h.here() && w.Login == nil {
					w.Err = fmt.Sprintf("rank %d is process %d on %s, where gompirun did not log in: run the debugger there", q.Rank, r.PID, h.name)
				}
			}
		}
		q.Answer(w)
	}
	h.asking = nil
}
