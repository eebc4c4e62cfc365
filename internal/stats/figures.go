package stats

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"
)

// counters are a rank's counters that belong to no site.
//
//c:struct gompi_counters
type counters struct {
	begun, left   atomic.Int64  // on the clock of seg.Now, 0 before
	uncounted     atomic.Int64  // calls without room for their site
	moved         atomic.Uint64 // bytes of an MPI program
	next          atomic.Uint64 // events written
	peers, events uint64
	seed          uint64 // selects the timed calls, differently on each rank
	clock         int64  // cost of reading the clock, in nanoseconds
	inside        atomic.Uint64
	busy          atomic.Int64 // time during which some thread was in a timed call, in nanoseconds
	latest        atomic.Int64 // site of the timed call that began last
	_             [4]uint64
}

// A site is one place that calls one function.
//
//c:struct gompi_site
type site struct {
	key atomic.Uint64 // 0: free
	Counts
	isShort  atomic.Uint64 // 1 if the average call is short, so that calls are sampled
	ofPython atomic.Uint64 // 1 if mpi4py calls here, for lines of Python that have sites themselves
	named    atomic.Uint64 // 1 when the texts are written
	//c:type char
	op [32]byte
	//c:type char
	place [80]byte
}

// Figures are the statistics of one rank.
type Figures struct {
	Rank      int
	Begun     int64 // when the rank joined its job, on the clock of seg.Now, or 0
	Left      int64 // when the rank left its job, or 0
	Busy      int64 // time in which some thread was in a call, in nanoseconds
	Open      int64 // the part of Busy in the call in which the process ended
	Ended     bool  // the process ended before it left the job
	Uncounted int64
	Dropped   int64 // calls that the trace has overwritten
	Sites     []Site
	Peers     []Peer
}

// A Site is one place that calls one function.
type Site struct {
	Op, Place string
	Counts
}

// Counts are the figures of a site: in memory, where all accesses are atomic, and in reports.
type Counts struct {
	Calls, Bytes     int64
	Timed            int64 // calls
	Time             int64 // of all calls in nanoseconds, estimated from the timed calls
	Fastest, Slowest int64 // of the timed calls; Fastest is one more, and 0 before the first
}

// sums add up each figure of Counts, over ranks and places.
var sums = [...]func(a, b int64) int64{plus, plus, plus, plus, least, most}

var _ [len(sums) * 8]byte = [unsafe.Sizeof(Counts{})]byte{}

func plus(a, b int64) int64  { return a + b }
func most(a, b int64) int64  { return max(a, b) }
func least(a, b int64) int64 { return int64(min(uint64(a)-1, uint64(b)-1) + 1) } // 0 is none

// Numbers returns the figures.
func (c *Counts) Numbers() *[len(sums)]int64 { return (*[len(sums)]int64)(unsafe.Pointer(c)) }

// Add adds the figures of another rank or place.
func (c *Counts) Add(more *Counts) {
	for i, n := range c.Numbers() {
		c.Numbers()[i] = sums[i](n, atomic.LoadInt64(&more.Numbers()[i]))
	}
}

// A Peer counts the messages to a rank.
type Peer struct {
	Rank            int
	Messages, Bytes uint64
}

// An Event is one call of a trace.
type Event struct {
	Begin, Duration int64
	Site            int // in Figures.Sites
	Peer, Tag       int // -1 for none
	Bytes           uint64
}

// Read returns the figures of a local rank, and its trace. ended is when its process ended: a call
// under way lasted until then. If the rank is still running, the figures are a snapshot, and events
// that are being written are left out.
func (m *Memory) Read(local int, ended int64) (Figures, []Event) {
	a := m.area(local)
	f := Figures{Begun: a.begun.Load(), Left: a.left.Load(), Busy: a.busy.Load(), Uncounted: a.uncounted.Load()}
	at := f.readSites(&a)
	if f.Ended = f.Left == 0; f.Ended {
		if last := at[a.latest.Load()%Sites]; last >= 0 {
			f.open(&f.Sites[last], a.openFor(ended))
		}
	}
	for i := range a.peers {
		if n := a.peers[i].messages.Load(); n > 0 {
			f.Peers = append(f.Peers, Peer{i, n, a.peers[i].bytes.Load()})
		}
	}
	return f, f.readEvents(&a, at)
}

func (f *Figures) open(s *Site, took int64) {
	f.Open, f.Busy = took, f.Busy+took
	s.Time, s.Slowest = s.Time+took, max(s.Slowest, took)
}

// EndedIn adds the call in which the process ended, and its duration, if that call was not timed
// and so is not in the rank's own figures.
func (f *Figures) EndedIn(op, place string, took int64) {
	if f.Open > 0 {
		return
	}
	i := slices.IndexFunc(f.Sites, func(s Site) bool { return s.Op == op && s.Place == place })
	if i >= 0 {
		f.open(&f.Sites[i], took)
	}
}

// Totals returns the sum over all sites of a local rank, which may still be running.
func (m *Memory) Totals(local int) (t Counts) {
	a := m.area(local)
	for i := range a.sites {
		t.Add(&a.sites[i].Counts)
	}
	t.Calls += a.uncounted.Load()
	return t
}

// readSites reads the sites. Sites of the same name are merged: a function of the program calls the
// operation at several places. It returns the index in Figures.Sites of each site of the table.
func (f *Figures) readSites(a *area) (at [Sites]int) {
	byName := map[[2]string]int{}
	for i := range a.sites {
		s := &a.sites[i]
		at[i] = -1
		if s.key.Load() == 0 || atomic.LoadInt64(&s.Calls) == 0 {
			continue
		}
		name := [2]string{"?", ""}
		if s.named.Load() != 0 {
			name = [2]string{text(s.op[:]), text(s.place[:])}
		}
		k, ok := byName[name]
		if !ok {
			k = len(f.Sites)
			byName[name] = k
			f.Sites = append(f.Sites, Site{Op: name[0], Place: name[1]})
		}
		f.Sites[k].Add(&s.Counts)
		at[i] = k
	}
	return at
}

// text returns a text of a site, without a rune that was cut.
func text(b []byte) string { return strings.ToValidUTF8(string(bytes.TrimRight(b, "\x00")), "") }

func (f *Figures) readEvents(a *area, at [Sites]int) (events []Event) {
	for i := range a.events {
		e := &a.events[i]
		stamp := e.stamp.Load()
		if stamp == 0 || e.site < 0 || e.site >= Sites || at[e.site] < 0 {
			continue
		}
		read := Event{e.begin, e.duration, at[e.site], int(e.peer), int(e.tag), e.bytes}
		if e.stamp.Load() == stamp {
			events = append(events, read)
		}
	}
	slices.SortFunc(events, func(x, y Event) int { return cmp.Compare(x.Begin, y.Begin) })
	f.Dropped = int64(a.next.Load()) - int64(len(events))
	return events
}
