package stall

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/plan"
)

// A doing is the common activity of some ranks.
type doing struct {
	text  string
	kept  string // obstacle to their processes' running
	hosts []string
	ranks []int
	since time.Duration
}

// summary returns a line for each collective that lacks ranks, then a line for each group of
// ranks in the same call, from the agents' answers in round. Collectives count after a rank has
// been in them for least. missing are the ranks that a collective lacks, or else the ranks in no
// call, by the agents' numbers.
func (w *Watch) summary(round *Round, least time.Duration) (lines []string, missing []int) {
	var all []ctl.RankDoing
	var groups []*doing
	index := map[string]*doing{}
	round.Each(func(h Agent, m *ctl.Doing) {
		for _, r := range m.Ranks {
			all = append(all, r)
			text := r.Text
			if r.Site != "" {
				text += " at " + r.Site
			}
			g := index[text+"\n"+r.Kept]
			if g == nil {
				g = &doing{text: text, kept: r.Kept}
				index[text+"\n"+r.Kept], groups = g, append(groups, g)
			}
			g.ranks, g.since = append(g.ranks, w.Named(r.Rank)), max(g.since, r.Since)
			if !slices.Contains(g.hosts, h.Name()) {
				g.hosts = append(g.hosts, h.Name())
			}
		}
	})
	lines, missing = w.gaps(all, least)
	if len(w.ended) > 0 && len(all) > 0 {
		slices.Sort(w.ended)
		lines = append(lines, fmt.Sprintf("rank %s has ended, and others run on", plan.Ranges(w.ended)))
	}
	if len(missing) == 0 {
		for _, r := range all {
			if r.Since == 0 {
				missing = append(missing, r.Rank)
			}
		}
	}
	for _, g := range groups {
		slices.Sort(g.ranks)
		line := fmt.Sprintf("%s: rank %s %s", hostsText(g.hosts), plan.Ranges(g.ranks), g.text)
		if g.since > 0 {
			line += fmt.Sprintf(" for %v", g.since.Round(100*time.Millisecond))
		}
		if g.kept != "" {
			line += "; it " + g.kept
		}
		lines = append(lines, line)
	}
	return lines, missing
}

// gaps lists, for each collective that has had a rank for at least least, the arrived and the
// missing ranks. Members of a communicator other than the world are known only from their recent
// collectives.
func (w *Watch) gaps(all []ctl.RankDoing, least time.Duration) (lines []string, anywhere []int) {
	var in []ctl.Mark
	texts := map[ctl.Mark]string{}
	for _, r := range all {
		if r.In.Seq > 0 && r.Since >= least && texts[r.In] == "" {
			in, texts[r.In] = append(in, r.In), strings.TrimPrefix(r.Text, "is in ")
		}
	}
	slices.SortFunc(in, func(a, b ctl.Mark) int {
		return cmp.Or(cmp.Compare(a.Comm, b.Comm), cmp.Compare(a.Seq, b.Seq))
	})
	for _, m := range in {
		var here, missing []int
		for _, r := range all {
			i := slices.IndexFunc(r.Marks, func(k ctl.Mark) bool { return k.Comm == m.Comm })
			switch {
			case r.In == m:
				here = append(here, w.Named(r.Rank))
			case i >= 0 && r.Marks[i].Seq >= m.Seq: // it has completed m
			case i >= 0 || m.Comm == 0 && w.Named(r.Rank) == r.Rank: // no replacement is in the world
				missing = append(missing, w.Named(r.Rank))
				anywhere = append(anywhere, r.Rank)
			}
		}
		if len(missing) > 0 {
			slices.Sort(here)
			slices.Sort(missing)
			lines = append(lines, fmt.Sprintf("%s: arrived: rank %s; missing: rank %s",
				texts[m], plan.Ranges(here), plan.Ranges(missing)))
		}
	}
	slices.Sort(anywhere)
	return lines, slices.Compact(anywhere)
}

// hostsText names a few hosts, or counts many.
func hostsText(hosts []string) string {
	if len(hosts) > 4 {
		return fmt.Sprintf("%d hosts", len(hosts))
	}
	return strings.Join(hosts, ", ")
}
