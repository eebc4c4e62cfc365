package agent

import (
	"time"

	"gompi/internal/boot/pmi"
	"gompi/internal/seg"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/proc"
)

// Three kinds of programs are not recognized before they run: a script whose program finds Open
// MPI's own library first, a Python that loads it, and a wrapper that drops gompirun's variables.
// Each rank then is a job of one, does all the work, and ends well. The running process reveals
// that. So the agent looks at ranks that have not joined, often at first: from the beginning of
// MPI_Init to its end, a program takes longer than aloneLook.
const (
	aloneLook = 50 * time.Millisecond
	lookPart  = 5  // the pause until the next look is this part of the time since the start
	lookCost  = 20 // and at least this multiple of a look's time
)

// lookForAlone reports ranks that are jobs of one to the launcher.
func (a *agent) lookForAlone(now time.Time) {
	a.nextAlone = time.Time{}
	silent := map[int]*process{}
	others := map[int]bool{}
	for _, p := range a.ranks {
		if a.silent(p) {
			silent[p.pid] = p
		} else {
			others[p.pid] = true
		}
	}
	if len(silent) == 0 {
		return
	}
	a.loop.Aside(func() func() {
		found := findAlone(silent, others, a.launch.JobID)
		return func() {
			for _, m := range found {
				a.ranks[a.local[m.Rank]].alone = true
				a.report(m)
			}
			a.nextAlone = now.Add(max(aloneLook, now.Sub(a.started)/lookPart, lookCost*time.Since(now)))
		}
	})
}

// silent reports whether a rank runs, has not joined, and is not known to be alone. Once known,
// its behavior does not matter.
func (a *agent) silent(p *process) bool {
	return p.pid != 0 && !p.ended && !p.alone && a.segment.State(p.local()) == seg.Starting &&
		p.pmi.State() == pmi.Silent
}

// findAlone looks at silent ranks, by process number, and their descendants, but not at other
// ranks. It may block: the kernel may wait for the memory of a process.
func findAlone(silent map[int]*process, others map[int]bool, jobID string) (found []*ctl.Alone) {
	below, err := proc.Below(func(pid int) bool { return others[pid] })
	if err != nil {
		return nil
	}
	known := map[*process]bool{}
	for _, process := range below { // parents come first
		p := silent[process.PID]
		if p == nil {
			if p = silent[process.Parent]; p == nil {
				continue // its parent has ended
			}
			silent[process.PID] = p
		}
		if known[p] {
			continue
		}
		if why, sure := proc.Alone(process.PID, jobID); why != "" {
			known[p] = true
			found = append(found, &ctl.Alone{Rank: p.Rank.Rank, PID: process.PID, Why: why, Sure: sure})
		}
	}
	return found
}
