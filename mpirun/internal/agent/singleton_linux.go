package agent

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"gompi/internal/seg"
	"gompi/mpirun/internal/pmiserver"
	"gompi/mpirun/internal/tree"
)

// program.CheckRanksMeet misses Open MPI where a script starts it or Python loads it. At run time
// it can be detected: MPI_Init of Open MPI 4 loads this component into a singleton, a process that
// was not started by its mpirun. Version 5 has it inside libmpi, where it cannot be detected.
var openMPIAlone = []byte("/mca_ess_singleton.so\n")

// singletonLooks is when the ranks are looked at, after they have been started.
// Programs that have ended by then are not found out.
var singletonLooks = [...]time.Duration{time.Second, 10 * time.Second}

// lookForSingletons tells the user, once, of ranks that run a program of Open MPI
// as a job of one.
func (a *agent) lookForSingletons(now time.Time) {
	a.looks++
	if a.looks < len(singletonLooks) {
		a.nextSingletons = now.Add(singletonLooks[a.looks] - singletonLooks[a.looks-1])
	} else {
		a.nextSingletons = time.Time{}
	}
	below, err := tree.Below(func(pid int) bool { return a.speaks(pid) })
	if err != nil {
		return
	}
	rankOf := map[int]*process{}
	for _, p := range a.ranks {
		rankOf[p.pid] = p
	}
	for _, p := range below { // parents come first
		if rankOf[p.PID] == nil {
			rankOf[p.PID] = rankOf[p.Parent]
		}
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.PID))
		if rank := rankOf[p.PID]; err == nil && rank != nil && bytes.Contains(maps, openMPIAlone) {
			a.note("rank %d runs a program of Open MPI (process %d) that has not found the other ranks: they meet over PMIx, which gompirun does not speak. Each of %d is rank 0 of 1; start it with Open MPI's mpirun",
				rank.Rank.Rank, p.PID, a.launch.Size)
			a.nextSingletons = time.Time{}
			return
		}
	}
}

// speaks reports whether a process is a rank that has met the others, or is about
// to: what it does besides is its own affair.
func (a *agent) speaks(pid int) bool {
	for _, p := range a.ranks {
		if p.pid == pid {
			return a.segment.State(p.local()) != seg.Starting || p.pmi.State() != pmiserver.Silent
		}
	}
	return false
}
