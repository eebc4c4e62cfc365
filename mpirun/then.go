package mpirun

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/plan"
)

// A failure is that of one rank.
type failure struct {
	rank  int
	how   string // "exited with status 1"
	cause *cause
}

// A sequel is what failed beside the cause of the job's end.
type sequel struct {
	failures []failure
	lost     []string // agents
}

// failedToo notes a rank's failure for the report. What the end of the job did
// to a rank is none.
func (j *job) failedToo(m *ctl.Exited, how string, c *cause) {
	ours := func(sig int) bool { return sig == int(unix.SIGTERM) || sig == int(unix.SIGKILL) }
	if j.cause != nil && (ours(m.Signal) || ours(m.Code-128)) {
		return
	}
	j.failures = append(j.failures, failure{m.Rank, how, c})
}

// then tells in one line each what failed alike.
func (s *sequel) then(first *cause) []string {
	alike := map[string][]int{}
	var hows []string
	for _, f := range s.failures {
		if f.cause == first {
			continue
		}
		if alike[f.how] == nil {
			hows = append(hows, f.how)
		}
		alike[f.how] = append(alike[f.how], f.rank)
	}
	var lines []string
	for _, how := range hows {
		slices.Sort(alike[how])
		lines = append(lines, fmt.Sprintf("then: rank %s %s", plan.Ranges(alike[how]), how))
	}
	for _, text := range s.lost {
		if text != first.text {
			lines = append(lines, "then: "+text)
		}
	}
	return lines
}
