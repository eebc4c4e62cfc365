package agent

import (
	"fmt"
	"slices"
	"time"

	"gompi/internal/boot/pmi"
	"gompi/internal/seg"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/plan"
	"gompi/mpirun/internal/proc"
)

// keptLook is the period of the search for ranks with an obstacle to their running. The user
// hears of obstacles found twice in a row, so within 5 s.
const keptLook = 2 * time.Second

// lookForKept reports ranks with an obstacle to their running, and ranks that continue. A rank
// stopped by a debugger is no news.
func (a *agent) lookForKept(now time.Time) {
	if a.segment == nil || a.launch.StallWarning <= 0 || now.Before(a.nextKept) {
		return
	}
	period := min(keptLook, a.launch.StallWarning)
	if a.nextKept = now.Add(period); a.alive == 0 {
		a.nextKept = time.Time{}
	}
	var news []string
	ranks := map[string][]int{}
	for _, p := range a.ranks {
		kept := a.keptFrom(p)
		quiet := a.asleep || a.end.ordered || kept == proc.Debugged
		if kept == p.reported || quiet || kept != "" && p.watch.Since() < period/2 {
			continue
		}
		what := kept
		if kept == "" {
			what = "continues"
		}
		p.reported = kept
		if ranks[what] == nil {
			news = append(news, what)
		}
		ranks[what] = append(ranks[what], p.Rank.Rank)
	}
	for _, what := range news {
		a.note("%s %s", a.ranksText(ranks[what]), what)
	}
}

// keptFrom returns the obstacle to the running of a rank's process, "" if there is none.
func (a *agent) keptFrom(p *process) string {
	if p.pid == 0 || p.ended {
		p.reported = ""
		return ""
	}
	pid := a.segment.PID(p.local())
	if pid == 0 { // it has not joined
		pid = proc.Worker(p.pid)
	}
	if p.watch == nil || p.watch.PID() != pid {
		p.watch = proc.NewWatch(pid)
	}
	kept := p.watch.Look()
	if kept == proc.Debugged && p.read {
		return ""
	}
	return kept
}

// ranksText names ranks, and the process of a single rank.
func (a *agent) ranksText(ranks []int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d (process %d)", a.originals.Original(ranks[0]),
			a.ranks[a.local[ranks[0]]].watch.PID())
	}
	named := make([]int, len(ranks))
	for i, r := range ranks {
		named[i] = a.originals.Original(r)
	}
	slices.Sort(named)
	return "rank " + plan.Ranges(named)
}

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
	silent := map[int]int{} // ranks, by process
	others := map[int]bool{}
	for _, p := range a.ranks {
		if a.silent(p) {
			silent[p.pid] = p.Rank.Rank
		} else {
			others[p.pid] = true
		}
	}
	if len(silent) == 0 {
		return
	}
	a.loop.Aside(func() func() {
		found := proc.FindAlone(silent, others, a.launch.JobID)
		return func() {
			for _, f := range found {
				a.ranks[a.local[f.Rank]].alone = true
				a.report(&ctl.Alone{Rank: f.Rank, PID: f.PID, Why: f.Why, Sure: f.Sure})
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
