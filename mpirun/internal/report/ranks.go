package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"gompi/internal/stats"
)

// A Rank is one rank of the job.
type Rank struct {
	Rank      int
	Host      string
	Elapsed   float64 // in the job
	Calls     int64
	InCalls   float64 // time in calls; simultaneous calls count once
	Outside   float64 // time outside: the program computes
	Share     float64 // InCalls of Elapsed, in percent
	Uncounted int64   `json:",omitempty"`
}

var rankColumns = []column[Rank]{
	{"rank", "", "rank", func(r *Rank) (any, string) { return r.Rank, fmt.Sprint(r.Rank) }},
	{"host", "", "host", func(r *Rank) (any, string) { return r.Host, r.Host }},
	{"time", "", "time", func(r *Rank) (any, string) { return r.Elapsed, duration(r.Elapsed) }},
	{"calls", "", "calls", func(r *Rank) (any, string) { return r.Calls, fmt.Sprint(r.Calls) }},
	{"in calls", "", "in calls", func(r *Rank) (any, string) { return r.InCalls, duration(r.InCalls) }},
	{"outside", "", "outside", func(r *Rank) (any, string) { return r.Outside, duration(r.Outside) }},
	{"share", "", "share", func(r *Rank) (any, string) { return r.Share, percent(r.Share) }},
}

// A rank is the figures of one rank.
type rank struct {
	host    string
	elapsed int64         // in its job, nanoseconds
	busy    int64         // in calls
	left    map[int]int64 // by run, when it left it
	ended   bool          // the last process did not leave
	sites   map[name]stats.Site
	peers   map[int]stats.Peer
	dropped int64
	missed  int64 // calls without a site
	traces  []trace
}

// add adds the figures of a process in a run of the job.
func (r *rank) add(host string, f *stats.Figures, run int) {
	r.host = host
	elapsed := max(0, f.Left-f.Begun)
	r.elapsed += elapsed
	r.busy += min(f.Busy, elapsed)
	r.left[run] = max(r.left[run], f.Left)
	r.ended = f.Ended
	r.missed += f.Uncounted
	r.dropped += f.Dropped
	t := trace{}
	for _, s := range f.Sites {
		n := name{s.Op, s.Place}
		t.sites = append(t.sites, n)
		sum := r.sites[n]
		sum.Op, sum.Place = s.Op, s.Place
		sum.Add(&s.Counts)
		r.sites[n] = sum
	}
	for _, p := range f.Peers {
		sum := r.peers[p.Rank]
		r.peers[p.Rank] = stats.Peer{Rank: p.Rank, Messages: sum.Messages + p.Messages, Bytes: sum.Bytes + p.Bytes}
	}
	r.traces = append(r.traces, t)
}

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

// A Pair is the messages from one rank to another.
type Pair struct {
	From, To        int
	Messages, Bytes uint64
}

var pairColumns = []column[Pair]{
	{"from", "", "from", func(p *Pair) (any, string) { return p.From, fmt.Sprint(p.From) }},
	{"to", "", "to", func(p *Pair) (any, string) { return p.To, fmt.Sprint(p.To) }},
	{"messages", "", "messages", func(p *Pair) (any, string) { return p.Messages, fmt.Sprint(p.Messages) }},
	{"bytes", "", "bytes", func(p *Pair) (any, string) { return p.Bytes, Amount(float64(p.Bytes)) }},
}

// pairs returns the messages between ranks, the largest total first.
func (c *Collector) pairs() (pairs []Pair) {
	for from, r := range c.ranks {
		for to, p := range r.peers {
			pairs = append(pairs, Pair{from, to, p.Messages, p.Bytes})
		}
	}
	slices.SortFunc(pairs, func(a, b Pair) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Messages, a.Messages),
			cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return pairs
}
