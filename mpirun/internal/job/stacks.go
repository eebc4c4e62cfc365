package job

import (
	"time"

	"gompi/mpirun/internal/ctl"
)

// lastStacks is the wait for the stacks of all ranks at the time limit.
type lastStacks struct {
	wanted map[int]bool // ranks with stacks to come
	late   <-chan time.Time
}

// stacksTime is the limit of that wait: debuggers take seconds for programs with many libraries.
const stacksTime = 12 * time.Second

// outOfTime ends the job at its time limit, after printing the calls of the ranks, with their
// stacks if the user wants them.
func (j *Job) outOfTime() {
	j.watch.Stacks = false // all ranks are asked below, not only ranks that others wait for
	j.watch.Survey()
	if !j.spec.Stall.Stacks || j.end.cause != nil {
		j.endForTime()
		return
	}
	j.stacks = lastStacks{wanted: map[int]bool{}, late: time.After(stacksTime)}
	var all []int
	for _, h := range j.hosts {
		if !h.drained {
			for _, r := range h.ranks {
				all = append(all, j.recover.Current(r))
			}
		}
	}
	for _, r := range all {
		j.stacks.wanted[r] = true
	}
	j.broadcast(&ctl.Ask{Stacks: all})
}

// gotStacks ends the wait after the last stacks.
func (j *Job) gotStacks(rank int) {
	if delete(j.stacks.wanted, rank); len(j.stacks.wanted) == 0 && j.stacks.late != nil {
		j.endForTime()
	}
}

func (j *Job) endForTime() {
	j.stacks = lastStacks{}
	j.timeUp("")
}
