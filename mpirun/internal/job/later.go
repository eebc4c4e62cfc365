package job

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/plan"
)

// A failure is the failure of one rank.
type failure struct {
	rank   int
	how    string // "exited with status 1"
	exited bool   // by itself, not by a signal
	cause  *cause
}

// laterFailures are the failures besides the cause of the job's end.
type laterFailures struct {
	ranks  []failure
	agents []*cause // losses of agents
}

// failedToo notes a rank's failure for the report. Ranks that were ended with the job have not
// failed.
func (j *Job) failedToo(m *ctl.Exited, how string, c *cause) {
	if j.endedWithJob(m) && m.Recorded == "" {
		return
	}
	j.later.ranks = append(j.later.ranks, failure{j.recover.original(m.Rank), how, m.Signal == 0, c})
}

// endedWithJob reports whether a rank was ended with the job.
func (j *Job) endedWithJob(m *ctl.Exited) bool {
	ours := func(sig int) bool {
		return sig == int(unix.SIGTERM) || sig == int(unix.SIGKILL) || sig == int(unix.SIGINT) && j.end.interrupt > 0
	}
	return j.end.cause != nil && (ours(m.Signal) || ours(m.Code-128))
}

// then prints the later failures, like ones in one line. The exit of a rank that has aborted the
// job is no further failure.
func (f *laterFailures) then(first *cause) []string {
	alike := map[string][]int{}
	var hows []string
	for _, r := range f.ranks {
		if r.cause == first || first != nil && first.abort && r.exited && r.rank == first.rank {
			continue
		}
		if alike[r.how] == nil {
			hows = append(hows, r.how)
		}
		alike[r.how] = append(alike[r.how], r.rank)
	}
	var lines []string
	for _, how := range hows {
		slices.Sort(alike[how])
		lines = append(lines, fmt.Sprintf("then: rank %s %s", plan.Ranges(slices.Compact(alike[how])), how))
	}
	for _, c := range f.agents {
		if c != first {
			lines = append(lines, "then: "+c.text)
		}
	}
	return lines
}
