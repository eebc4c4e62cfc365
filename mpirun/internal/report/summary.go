package report

import (
	"cmp"
	"maps"
	"slices"

	"gompi/internal/stats"
)

// A Summary is the report of -stats, with the fields of its JSON. Times are in seconds.
type Summary struct {
	Program string
	Ranks   int
	Hosts   []string
	Runs    int      // of the program, with -max-restarts
	Elapsed float64  // the longest time of a rank in the job
	Verdict string   // the late ranks, in a sentence
	Hint    string   `json:",omitempty"` // if nothing was counted
	Where   string   `json:",omitempty"` // where the others have waited longest for the late ranks
	Late    []int    // ranks that the others have waited for, none if the job is balanced
	Missing []string `json:",omitempty"` // hosts without figures
	Copies  float64  // bytes that one processor copies in a second, on the slowest host
	PerRank []Rank
	Sites   []Site
	Pairs   []Pair // all, the largest first
}

// A Rank is one rank of the job.
type Rank struct {
	Rank      int
	Host      string
	Elapsed   float64 // in the job
	Calls     uint64
	InCalls   float64 // time in calls; simultaneous calls count once
	Outside   float64 // time outside: the program computes
	Share     float64 // InCalls of Elapsed, in percent
	Uncounted uint64  `json:",omitempty"`
}

// A Site is a function and the place of its calls, over all ranks.
type Site struct {
	Op, Place      string
	Ranks          int // number of calling ranks
	Calls, Bytes   uint64
	Time           float64 // of all ranks
	Min, Mean, Max float64 // of one rank
	Imbalance      float64 // Max above Mean, in percent
	Wait           float64 // part of Time spent waiting for others, in percent
	Latest         int     // rank that the others wait for here, -1 for none
	Slowest        float64 // longest call
	Bandwidth      float64 // bytes in a second of a rank's time
}

// A Pair is the messages from one rank to another.
type Pair struct {
	From, To        int
	Messages, Bytes uint64
}

// Summary adds up the collected figures.
func (c *Collector) Summary() *Summary {
	s := &Summary{Program: c.Program, Ranks: c.NP, Hosts: c.hosts, Runs: c.runs, Missing: c.lost}
	for _, n := range c.copies {
		if rate := float64(n); s.Copies == 0 || rate < s.Copies {
			s.Copies = rate
		}
	}
	s.PerRank = c.perRank()
	for _, r := range s.PerRank {
		s.Elapsed = max(s.Elapsed, r.Elapsed)
	}
	s.Sites, s.Pairs = c.sites(s.Elapsed), c.pairs()
	s.Late, s.Verdict, s.Where = c.late(s.Elapsed)
	if len(c.ranks) == 0 {
		s.Hint = c.Hint
	}
	return s
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

func (c *Collector) perRank() (ranks []Rank) {
	for _, i := range slices.Sorted(maps.Keys(c.ranks)) {
		r := c.ranks[i]
		line := Rank{Rank: i, Host: r.host, Elapsed: seconds(r.elapsed), InCalls: seconds(r.busy), Uncounted: r.missed}
		for _, s := range r.sites {
			if !serves(&s) {
				line.Calls += s.Calls
			}
		}
		line.Outside = line.Elapsed - line.InCalls
		if line.Elapsed > 0 {
			line.Share = line.InCalls / line.Elapsed * 100 // exactly 100 where both are equal
		}
		ranks = append(ranks, line)
	}
	return ranks
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
	least, fastest := -1.0, -1.0
	for _, s := range of {
		t := seconds(s.Time)
		if line.Calls == 0 || t < line.Min {
			line.Min = t
		}
		line.Max = max(line.Max, t)
		line.Calls, line.Bytes, line.Time = line.Calls+s.Calls, line.Bytes+s.Bytes, line.Time+t
		line.Slowest = max(line.Slowest, seconds(s.Slowest))
		if mean := t / float64(s.Calls); least < 0 || mean < least {
			least = mean
		}
		if s.Timed > 0 && (fastest < 0 || seconds(s.Fastest) < fastest) {
			fastest = seconds(s.Fastest)
		}
	}
	line.Mean = line.Time / float64(len(of))
	if line.Mean > 0 {
		line.Imbalance = 100 * (line.Max/line.Mean - 1)
	}
	if !collective(n.op) {
		least = max(fastest, 0)
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

// pairs returns the messages between ranks, the largest total first.
func (c *Collector) pairs() (pairs []Pair) {
	for from, r := range c.ranks {
		for to, p := range r.peers {
			pairs = append(pairs, Pair{from, to, p.Messages, p.Bytes})
		}
	}
	slices.SortFunc(pairs, func(a, b Pair) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Messages, a.Messages), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return pairs
}
