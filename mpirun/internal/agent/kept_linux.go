package agent

import (
	"fmt"
	"slices"
	"time"

	"gompi/internal/world"
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
		return fmt.Sprintf("rank %d (process %d)", a.originals.named(world.Rank(ranks[0])),
			a.ranks[a.local[ranks[0]]].watch.PID())
	}
	named := make([]int, len(ranks))
	for i, r := range ranks {
		named[i] = int(a.originals.named(world.Rank(r)))
	}
	slices.Sort(named)
	return "rank " + plan.Ranges(named)
}
