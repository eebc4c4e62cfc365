package mpirun

import (
	"time"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/stall"
)

// lastStacks is the wait, at the time limit, for the stacks of all ranks.
type lastStacks struct {
	wanted     map[int]bool // ranks that have not told theirs
	stacksLate <-chan time.Time
}

// outOfTime ends the job for its time limit, once it is told what the ranks are in,
// with their stacks if the user wants those.
func (j *job) outOfTime() {
	j.watch.Survey()
	if !j.spec.Stall.GetStacks || j.cause != nil {
		j.endForTime()
		return
	}
	j.lastStacks = lastStacks{wanted: map[int]bool{}, stacksLate: time.After(stall.SurveyTime)}
	var all []int
	for _, l := range j.links {
		if !l.drained {
			all = append(all, l.ranks...)
		}
	}
	for _, r := range all {
		j.wanted[r] = true
	}
	j.broadcast(&ctl.Ask{Stacks: all})
}

// heardStacks ends the wait for stacks when the last have come.
func (j *job) heardStacks(rank int) {
	if delete(j.wanted, rank); len(j.wanted) == 0 && j.stacksLate != nil {
		j.endForTime()
	}
}

func (j *job) endForTime() {
	j.lastStacks = lastStacks{}
	j.timeUp("")
}
