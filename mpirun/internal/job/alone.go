package job

import (
	"gompi/internal/env"
	"gompi/mpirun/internal/ctl"
)

// alone handles a rank that is a job of one by mistake. The user is notified at once, of the
// first such rank. Even if the rank ends well, that is a failure: it has done the work of all
// ranks.
func (j *Job) alone(h *host, m *ctl.Alone) {
	if j.lone == nil {
		j.lone = map[int]bool{}
		j.notef("%s on %s (process %d) is rank 0 of 1, as each of %d will be: %s (-x %s=alone says that this is meant)",
			j.recover.name(m.Rank), h.name, m.PID, len(j.plan.Ranks), m.Why, env.Boot)
	}
	j.lone[m.Rank] = m.Sure
}
