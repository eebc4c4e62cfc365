package agent

import (
	"fmt"

	"gompi/internal/seg"
	"gompi/internal/stats"
	"gompi/internal/world"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/hostinfo"
	"gompi/mpirun/internal/symbols"
)

// makeStats makes the memory for the ranks' counters, if the job counts.
func (a *agent) makeStats(ranks []world.Rank) error {
	if !a.launch.Stats {
		return nil
	}
	places := a.launch.Size + a.launch.Spares*max(1, a.launch.Nodes)
	mem, err := a.segment.Extend(stats.Size(a.places(), places, a.launch.Trace))
	if err != nil {
		return fmt.Errorf("-stats: %w", err)
	}
	numbers := make([]int, len(ranks))
	for i, r := range ranks {
		numbers[i] = int(r)
	}
	a.stats = stats.Format(mem, numbers, places, a.launch.Trace)
	return nil
}

// reportStats reports the counters of all ranks, even killed ranks. It is called after their end.
func (a *agent) reportStats() {
	if a.stats == nil {
		return
	}
	copies := hostinfo.CopyRate()
	named := map[int]func(string) string{}
	for _, p := range a.ranks {
		f, events := a.stats.Read(p.index, p.endedAt)
		if f.Begun == 0 {
			continue // it has not joined the job
		}
		if f.Ended {
			a.endedIn(p, &f)
			f.Left = p.endedAt
		}
		f.Rank, f.Begun, f.Left = p.Rank.Rank, seg.Unix(f.Begun), seg.Unix(f.Left)
		if named[p.Program] == nil {
			named[p.Program] = symbols.Places(a.preparation.Programs[p.Program].Path)
		}
		for i := range f.Sites {
			f.Sites[i].Place = named[p.Program](f.Sites[i].Place)
		}
		a.report(&ctl.Figures{Figures: f, Copies: copies})
		for len(events) > 0 {
			n := min(len(events), ctl.MaxEvents)
			for i := range events[:n] {
				events[i].Begin = seg.Unix(events[i].Begin)
			}
			a.report(&ctl.Events{Rank: p.Rank.Rank, Events: events[:n]})
			events = events[n:]
		}
	}
	a.stats = nil
}

// endedIn adds a Go program's call during which a rank ended, from the flight recorder.
func (a *agent) endedIn(p *process, f *stats.Figures) {
	c, number := seg.Running(a.segment.Calls(p.local()))
	if c == nil || c.Start == 0 {
		return
	}
	if place := a.segment.Site(p.local(), number); place != "" { // else the call is in the background
		f.EndedIn(c.Kind.String(), place, max(0, p.endedAt-c.Start))
	}
}
