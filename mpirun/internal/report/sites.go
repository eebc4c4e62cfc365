package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"gompi/internal/stats"
)

// A Site is a function and the place of its calls, over all ranks.
type Site struct {
	Op, Place      string
	Ranks          int // number of calling ranks
	Calls, Bytes   int64
	Time           float64 // of all ranks
	Min, Mean, Max float64 // of one rank
	Imbalance      float64 // Max above Mean, in percent
	Wait           float64 // part of Time spent waiting for others, in percent
	Latest         int     // rank that the others wait for here, -1 for none
	Slowest        float64 // longest call
	Bandwidth      float64 // bytes in a second of a rank's time
}

var siteColumns = []column[Site]{
	{"call", "call", "call", func(l *Site) (any, string) { return l.Op, l.Op }},
	{"called at", "called at", "called at", func(l *Site) (any, string) { return l.Place, cmp.Or(l.Place, "-") }},
	{"", "ranks", "ranks", func(l *Site) (any, string) { return l.Ranks, fmt.Sprint(l.Ranks) }},
	{"calls", "calls", "calls", func(l *Site) (any, string) { return l.Calls, fmt.Sprint(l.Calls) }},
	{"bytes", "bytes", "bytes", func(l *Site) (any, string) { return l.Bytes, Amount(float64(l.Bytes)) }},
	{"time/rank", "time/rank (s)", "time of a rank", func(l *Site) (any, string) { return l.Mean, duration(l.Mean) }},
	{"min", "min (s)", "min", func(l *Site) (any, string) { return l.Min, duration(l.Min) }},
	{"max", "max (s)", "max", func(l *Site) (any, string) { return l.Max, duration(l.Max) }},
	{"", "slowest call (s)", "slowest call", func(l *Site) (any, string) { return l.Slowest, duration(l.Slowest) }},
	{"", "imbalance (%)", "imbalance", func(l *Site) (any, string) { return l.Imbalance, percent(l.Imbalance) }},
	{"wait", "wait (%)", "wait", func(l *Site) (any, string) { return l.Wait, percent(l.Wait) }},
	{"late", "late", "late", latestOf},
	{"bandwidth", "bandwidth (B/s)", "bandwidth", bandwidthOf},
}

func latestOf(l *Site) (any, string) {
	if l.Latest < 0 {
		return "", "-"
	}
	return l.Latest, fmt.Sprintf("rank %d", l.Latest)
}

func bandwidthOf(l *Site) (any, string) {
	if l.Bytes == 0 {
		return l.Bandwidth, "-"
	}
	return l.Bandwidth, Amount(l.Bandwidth) + "/s"
}

// sites adds up the sites of all ranks, the longest first.
func (c *Collector) sites(elapsed float64) (lines []Site) {
	all := map[name]map[int]stats.Site{}
	for i, r := range c.ranks {
		for n, s := range r.sites {
			if serves(&s) {
				continue
			}
			if all[n] == nil {
				all[n] = map[int]stats.Site{}
			}
			all[n][i] = s
		}
	}
	for n, of := range all {
		lines = append(lines, siteOf(n, of, elapsed))
	}
	slices.SortFunc(lines, func(a, b Site) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Op, b.Op), cmp.Compare(a.Place, b.Place))
	})
	return lines
}

// siteOf adds up a site of some ranks.
//
// A call's wait is its time beyond the least possible. In a collective the least is the mean of
// the rank that spent least there, because it came last; elsewhere, such as in a receive, the
// fastest call of any rank. The last rank is chosen as in the verdict.
func siteOf(n name, of map[int]stats.Site, elapsed float64) Site {
	line := Site{Op: n.op, Place: n.place, Ranks: len(of), Latest: -1}
	sum, least := stats.Counts{}, -1.0
	for _, s := range of {
		t := seconds(s.Time)
		if sum.Calls == 0 || t < line.Min {
			line.Min = t
		}
		line.Max = max(line.Max, t)
		if mean := t / float64(s.Calls); least < 0 || mean < least {
			least = mean
		}
		sum.Add(&s.Counts)
	}
	line.Calls, line.Bytes, line.Time, line.Slowest = sum.Calls, sum.Bytes, seconds(sum.Time), seconds(sum.Slowest)
	line.Mean = line.Time / float64(len(of))
	if line.Mean > 0 {
		line.Imbalance = 100 * (line.Max/line.Mean - 1)
	}
	if !collective(n.op) {
		least = seconds(max(0, sum.Fastest-1))
	} else if line.Latest = latest(of, often, elapsed); line.Latest < 0 {
		line.Latest = latest(of, once, elapsed)
	}
	if line.Time > 0 {
		line.Wait = 100 * max(0, line.Time-least*float64(line.Calls)) / line.Time
		line.Bandwidth = float64(line.Bytes) / line.Time
	}
	return line
}

// latest returns the rank that spent least in calls of a collective, -1 if the others spent about
// as much.
func latest(of map[int]stats.Site, by measure, elapsed float64) (rank int) {
	least, low, high := -1.0, -1.0, 0.0
	for _, i := range slices.Sorted(maps.Keys(of)) {
		s := of[i]
		t := seconds(by.of(&s))
		if low < 0 || t < low {
			low = t
		}
		high = max(high, t)
		if mean := t / float64(s.Calls); least < 0 || mean < least {
			least, rank = mean, i
		}
	}
	if !by.differs(low, high, elapsed) {
		return -1
	}
	return rank
}
