package job

import (
	"time"

	"gompi/mpirun/internal/ctl"
)

// lastStacks waits, at the time limit, for the stacks of all ranks.
type lastStacks struct {
	wanted map[int]bool // ranks whose stacks have not come
	late   <-chan time.Time
}

// stacksTime is how long that waits: debuggers take seconds for programs with many libraries.
const stacksTime = 12 * time.Second

// outOfTime ends the job at its time limit, after it has printed which calls the ranks are in, with
// their stacks if the user wants those.
func (j *Job) outOfTime() {
	j.watch.Stacks = false // all ranks are asked below, not only those that others wait for
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
				all = append(all, j.recover.current(r))
			}
		}
	}
	for _, r := range all {
		j.stacks.wanted[r] = true
	}
	j.broadcast(&ctl.Ask{Stacks: all})
}

// gotStacks ends the wait for stacks when the last have come.
func (j *Job) gotStacks(rank int) {
	if delete(j.stacks.wanted, rank); len(j.stacks.wanted) == 0 && j.stacks.late != nil {
		j.endForTime()
	}
}

func (j *Job) endForTime() {
	j.stacks = lastStacks{}
	j.timeUp("")
}
