package stats

import (
	"bytes"
	"cmp"
	"slices"
)

// Figures are the statistics of one rank.
type Figures struct {
	Rank      int
	Begun     int64 // when the rank joined its job, on the clock of seg.Now, or 0
	Left      int64 // when the rank left its job, or 0
	Busy      int64 // time in which some thread was in a call, in nanoseconds
	Open      int64 // the part of Busy in the call in which the process ended
	Ended     bool  // the process ended before it left the job
	Uncounted uint64
	Sites     []Site
	Peers     []Peer
	Dropped   uint64 // calls that the trace has overwritten
}

// A Site is one place that calls one function.
type Site struct {
	Op, Place    string
	Calls, Bytes uint64
	Timed        uint64 // calls
	Time         int64  // of all calls, in nanoseconds
	Fastest      int64  // of the timed calls
	Slowest      int64
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
func (m *Memory) Totals(local int) (t Site) {
	a := m.area(local)
	for i := range a.sites {
		s := &a.sites[i]
		t.Add(Site{Calls: s.calls.Load(), Bytes: s.bytes.Load(), Time: s.time.Load()})
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
		if s.key.Load() == 0 || s.calls.Load() == 0 {
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
		f.Sites[k].Add(Site{
			Calls: s.calls.Load(), Bytes: s.bytes.Load(), Timed: s.timed.Load(),
			Time: s.time.Load(), Fastest: max(0, s.fastest.Load()-1), Slowest: s.slowest.Load(),
		})
		at[i] = k
	}
	return at
}

// Add adds the figures of another rank or place at the same site.
func (s *Site) Add(t Site) {
	if t.Timed > 0 && (s.Timed == 0 || t.Fastest < s.Fastest) {
		s.Fastest = t.Fastest
	}
	s.Slowest = max(s.Slowest, t.Slowest)
	s.Calls, s.Bytes, s.Timed, s.Time = s.Calls+t.Calls, s.Bytes+t.Bytes, s.Timed+t.Timed, s.Time+t.Time
}

func text(b []byte) string { return string(bytes.TrimRight(b, "\x00")) }

func (f *Figures) readEvents(a *area, at [Sites]int) (events []Event) {
	if len(a.events) == 0 {
		return nil
	}
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
	f.Dropped = a.next.Load() - uint64(len(events))
	return events
}
