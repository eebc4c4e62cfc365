// Package report turns the figures of a job's ranks (package stats) into the output of gompirun
// -stats and -trace: a table, JSON, a page of HTML, and a trace. It knows nothing of agents.
// Figures of several runs of a job are added up, and so are figures of a rank and its
// replacements.
package report

import (
	"os"
	"slices"

	"gompi/internal/stats"
	"gompi/mpirun/internal/cmdline"
)

// A Collector takes the figures of a job's ranks. One goroutine at a time uses it.
type Collector struct {
	Program string
	NP      int
	Hint    string // for a job that has counted nothing
	runs    int
	hosts   []string         // in the order in which they reported
	copies  map[string]int64 // bytes that one processor copies in a second, by host
	ranks   map[int]*rank
	lost    []string      // hosts from which no figures came
	ends    map[int]int64 // by run, when the last rank left it

	want  *cmdline.Stats // of Open
	table *os.File       // nil: to stderr
	trace *os.File       // nil for none
}

// A name is the function and the place of a site.
type name struct{ op, place string }

// A trace is the calls of one process.
type trace struct {
	sites  []name
	events []stats.Event // their times are of the launcher's clock
}

// New returns an empty Collector.
func New(program string, np int) *Collector {
	return &Collector{Program: program, NP: np, copies: map[string]int64{}, ranks: map[int]*rank{},
		ends: map[int]int64{}}
}

// Run notes a start of the job, the first or another.
func (c *Collector) Run() { c.runs++ }

// Lost notes a host whose figures are lost.
func (c *Collector) Lost(host string) {
	if !slices.Contains(c.lost, host) {
		c.lost = append(c.lost, host)
	}
}

// Add adds the figures of a process on a host. Ranks in f, also in f.Peers, are original ranks: a
// replacement counts for the rank whose place it took. Times in f are of the launcher's clock.
// copies are the bytes that one processor there copies in a second.
func (c *Collector) Add(host string, f *stats.Figures, copies int64) {
	r := c.ranks[f.Rank]
	if r == nil {
		r = &rank{sites: map[name]stats.Site{}, peers: map[int]stats.Peer{}, left: map[int]int64{}}
		c.ranks[f.Rank] = r
	}
	if !slices.Contains(c.hosts, host) {
		c.hosts = append(c.hosts, host)
	}
	c.copies[host] = copies
	c.ends[c.runs] = max(c.ends[c.runs], f.Left)
	r.add(host, f, c.runs)
}

// AddEvents adds calls of the process of the latest Add. Their times are of the launcher's clock.
func (c *Collector) AddEvents(rank int, events []stats.Event) {
	if r := c.ranks[rank]; r != nil {
		t := &r.traces[len(r.traces)-1]
		t.events = append(t.events, events...)
	}
}
