package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gompi/internal/seg"
	"gompi/internal/stats"
)

// A Summary is what -stats reports, as its JSON has it. Times are in seconds.
type Summary struct {
	Program string
	Ranks   int
	Hosts   []string
	Runs    int      // of the program, with -max-restarts
	Elapsed float64  // of the rank that was longest in the job
	Verdict string   // who was late, in a sentence
	Where   string   `json:",omitempty"` // the others have waited longest for these
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
	InCalls   float64 // time in calls
	Outside   float64 // and outside: what the program computes
	Share     float64 // InCalls of Elapsed, in percent
	Uncounted uint64  `json:",omitempty"`
}

// A Site is a function and the place that calls it, of all ranks.
type Site struct {
	Op, Place      string
	Ranks          int // that call it
	Calls, Bytes   uint64
	Time           float64 // of all ranks
	Min, Mean, Max float64 // of one rank
	Imbalance      float64 // how much Max is above Mean, in percent
	Wait           float64 // of Time, for others, in percent
	Latest         int     // the rank that the others wait for here, -1 for none
	Slowest        float64 // call
	Bandwidth      float64 // bytes in a second of a rank's time
}

// A Pair is the messages from one rank to another.
type Pair struct {
	From, To        int
	Messages, Bytes uint64
}

// Summary adds up what was collected.
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
	return s
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

func (c *Collector) perRank() (ranks []Rank) {
	for _, i := range slices.Sorted(maps.Keys(c.ranks)) {
		r := c.ranks[i]
		line := Rank{Rank: i, Host: r.host, Elapsed: seconds(r.elapsed), InCalls: r.inCalls(total), Uncounted: r.missed}
		for _, s := range r.sites {
			if !serves(&s) {
				line.Calls += s.Calls
			}
		}
		line.Outside = max(0, line.Elapsed-line.InCalls) // several goroutines may be in calls at once
		if line.Elapsed > 0 {
			line.Share = 100 * line.InCalls / line.Elapsed
		}
		ranks = append(ranks, line)
	}
	return ranks
}

// serves reports whether a site is where a thread waits that serves others, not the program:
// torch's store on rank 0, and others over gompi for C, wait so for what they are asked.
func serves(s *stats.Site) bool { return s.Place == "" && s.Op == stats.Probe.String() }

// A difference between the times of ranks is one if it is larger than a part of the time of the
// job, and than some seconds: what else runs on the hosts, and the start of processes, makes as
// much.
func differ(least, most, elapsed float64) bool { return most-least > max(0.05*elapsed, 0.02) }

// A measure is how much of the time at a place is compared between ranks, in nanoseconds.
type measure func(*stats.Site) int64

func total(s *stats.Site) int64 { return s.Time }

// steady leaves out the longest call at each place: for that may be the wait for what one rank does
// once, such as to read a file, or what held a host up.
func steady(s *stats.Site) int64 { return s.Time - s.Slowest }

// inCalls returns for how long the rank was in calls, in seconds.
func (r *rank) inCalls(of measure) (sum float64) {
	for _, s := range r.sites {
		if !serves(&s) {
			sum += seconds(of(&s))
		}
	}
	return sum
}

// late returns the ranks that the others have waited for, again and again: or, if there are none,
// those that they have waited for in few calls. And it says so, and where they have.
func (c *Collector) late(elapsed float64) (who []int, verdict, where string) {
	switch len(c.ranks) {
	case 0:
		return nil, "no rank has used gompi: there is nothing to count", ""
	case 1:
		return nil, "there is no other rank to wait for", ""
	}
	if who, verdict = c.lateBy(steady, elapsed); who != nil {
		return who, verdict, "most of it " + c.where(who, steady) + "; the longest call at each place is left out"
	}
	if who, verdict = c.lateBy(total, elapsed); who != nil {
		return who, verdict, "most of it " + c.where(who, total) + ", in few calls"
	}
	return nil, verdict, ""
}

// lateBy returns the ranks that are late by a measure. A rank that computes for longer comes late
// to what all do together, and waits least there: so it is one that was in calls for the least
// time. With it are counted late all that are nearer to it than to the one that waited most.
func (c *Collector) lateBy(of measure, elapsed float64) (who []int, verdict string) {
	in := map[int]float64{}
	for i, r := range c.ranks {
		in[i] = r.inCalls(of)
	}
	by := slices.SortedFunc(maps.Keys(in), func(a, b int) int { return cmp.Or(cmp.Compare(in[a], in[b]), cmp.Compare(a, b)) })
	first, last := by[0], by[len(by)-1]
	least, most := in[first], in[last]
	if !differ(least, most, elapsed) {
		return nil, fmt.Sprintf("the ranks are balanced: they were in calls for %s to %s", duration(least), duration(most))
	}
	var others float64
	for _, i := range by {
		if in[i]-least < (most-least)/3 {
			who = append(who, i)
		} else {
			others += in[i]
		}
	}
	if 2*len(who) > len(by) {
		return nil, fmt.Sprintf("most ranks have waited little: rank %d was in calls for %s, and rank %d for %s, longest",
			first, duration(least), last, duration(most))
	}
	slices.Sort(who)
	return who, fmt.Sprintf("%s late: in calls for %s, the others for %s on average, of %s",
		rankNames(who), duration(least), duration(others/float64(len(by)-len(who))), duration(elapsed))
}

// where returns at which place the others have waited longest for some ranks.
func (c *Collector) where(who []int, of measure) string {
	excess := map[name]float64{}
	for i, r := range c.ranks {
		part := 1 / float64(len(c.ranks)-len(who))
		if slices.Contains(who, i) {
			part = -1 / float64(len(who))
		}
		for n, s := range r.sites {
			if !serves(&s) {
				excess[n] += part * float64(of(&s))
			}
		}
	}
	n := slices.MaxFunc(slices.Collect(maps.Keys(excess)), func(a, b name) int {
		return cmp.Or(cmp.Compare(excess[a], excess[b]), cmp.Compare(a.op, b.op), cmp.Compare(a.place, b.place))
	})
	if n.place == "" {
		return "in " + n.op
	}
	return "in " + n.op + " at " + n.place
}

// rankNames names some ranks as the subject of a sentence: "rank 3 was".
func rankNames(ranks []int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d was", ranks[0])
	}
	var names []string
	for _, r := range ranks {
		names = append(names, fmt.Sprint(r))
	}
	return "ranks " + strings.Join(names, ", ") + " were"
}

// collective reports whether all ranks of a communicator call op together, and wait.
func collective(op string) bool {
	op = strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(strings.ToLower(op), "mpi_"), "_c"), "_", "")
	for k := seg.Barrier; k.Collective(); k++ {
		if op == strings.ReplaceAll(k.String(), "_", "") {
			return true
		}
	}
	return false
}

// sites adds up the sites of all ranks, those that took longest first.
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
// What a call has waited for others is what it took beyond the least that it can: in a collective
// the mean of the rank that spent least there, which so came last; in all else, such as a receive,
// the fastest call of any rank. Who came last most often is said without the longest call, as in
// the verdict.
func siteOf(n name, of map[int]stats.Site, elapsed float64) Site {
	line := Site{Op: n.op, Place: n.place, Ranks: len(of), Latest: -1}
	isCollective := collective(n.op)
	least, fastest, shortest := -1.0, -1.0, -1.0
	for _, i := range slices.Sorted(maps.Keys(of)) {
		s := of[i]
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
		waits := t
		if s.Calls > 1 {
			waits = seconds(steady(&s))
		}
		if mean := waits / float64(s.Calls); shortest < 0 || mean < shortest {
			shortest, line.Latest = mean, i
		}
		if s.Timed > 0 && (fastest < 0 || seconds(s.Fastest) < fastest) {
			fastest = seconds(s.Fastest)
		}
	}
	line.Mean = line.Time / float64(len(of))
	if line.Mean > 0 {
		line.Imbalance = 100 * (line.Max/line.Mean - 1)
	}
	if !isCollective {
		least = max(fastest, 0)
	}
	if line.Time > 0 {
		line.Wait = 100 * max(0, line.Time-least*float64(line.Calls)) / line.Time
		line.Bandwidth = float64(line.Bytes) / line.Time
	}
	if !isCollective || len(of) < 2 || !differ(line.Min, line.Max, elapsed) {
		line.Latest = -1
	}
	return line
}

// pairs returns who has sent what to whom, the largest first.
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
