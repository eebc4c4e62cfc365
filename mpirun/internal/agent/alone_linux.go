package agent

import (
	"slices"
	"time"

	"gompi/internal/seg"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/inspect"
	"gompi/mpirun/internal/pmiserver"
	"gompi/mpirun/internal/tree"
)

// program.CheckRanksMeet misses Open MPI where a script starts it or Python loads it, and nothing
// shows beforehand that a wrapper drops gompirun's variables. Then each rank is a job of one, does
// all the work, and ends well. While such a process runs, it shows. So the ranks that have not
// joined are looked at, often at first: from the beginning of MPI_Init to its end, a program takes
// longer than aloneLook.
const (
	aloneLook = 50 * time.Millisecond
	lookPart  = 5  // looks become rarer: from one to the next passes this part of the time until it
	lookCost  = 20 // and so many times as long as it took, since it holds up all else
)

// lookForAlone tells the launcher of ranks that are jobs of one.
func (a *agent) lookForAlone(now time.Time) {
	a.nextAlone = time.Time{}
	if !slices.ContainsFunc(a.ranks, a.silent) {
		return
	}
	a.findAlone()
	a.nextAlone = now.Add(max(aloneLook, now.Sub(a.started)/lookPart, lookCost*time.Since(now)))
}

// silent reports whether a rank runs that has not joined. What it does besides, once it has, is
// its own affair.
func (a *agent) silent(p *process) bool {
	return p.pid != 0 && !p.ended && a.segment.State(p.local()) == seg.Starting && p.pmi.State() == pmiserver.Silent
}

func (a *agent) findAlone() {
	rankOf := map[int]*process{}
	for _, p := range a.ranks {
		rankOf[p.pid] = p
	}
	below, err := tree.Below(func(pid int) bool { p := rankOf[pid]; return p != nil && !a.silent(p) })
	if err != nil {
		return
	}
	for _, process := range below { // parents come first
		p := rankOf[process.PID]
		if p == nil {
			if p = rankOf[process.Parent]; p == nil {
				continue // its parent has ended
			}
			rankOf[process.PID] = p
		}
		if p.alone {
			continue
		}
		if why, sure := inspect.Alone(process.PID, a.launch.JobID); why != "" {
			p.alone = true
			a.report(&ctl.Alone{Rank: p.Rank.Rank, PID: process.PID, Why: why, Sure: sure})
		}
	}
}
