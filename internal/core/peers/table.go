// Package peers uses the transports of a rank as one: it finds the transport that reaches another
// rank, sends frames to that rank, and polls, arms and closes all transports. A Peer has the state
// for sending to a rank: its transport, why the rank is lost, and the credit between the two.
// Packages above interpret the frames.
//
// The lock of the rank's progress engine guards everything.
package peers

import (
	"time"

	"gompi/internal/world"
	"gompi/transport"
)

// A Table has the peers of a rank, in pages made on first use: a job of thousands of ranks in one
// process cannot afford an entry per pair.
type Table struct {
	size        int
	pages       [][]*Peer
	recent      *Peer // the last peer looked up
	transports  []*way
	progressers []transport.Progresser
	missesEnds  bool
	polls       int
}

const pageSize = 64

var nowhere way // of peers that no transport reaches

// A way is a transport and its optional parts.
type way struct {
	transport.Transport
	can transport.Capabilities
}

// Init makes t ready for a job of size ranks.
func (t *Table) Init(size int) {
	t.size, t.pages = size, make([][]*Peer, (size+pageSize-1)/pageSize)
}

// Use adds a transport. Transports added earlier are preferred.
func (t *Table) Use(tr transport.Transport) {
	w := &way{tr, tr.Capabilities()}
	t.transports = append(t.transports, w)
	if w.can.Progresser != nil {
		t.progressers = append(t.progressers, w.can.Progresser)
	}
	t.missesEnds = t.missesEnds || w.can.DeathObserver != nil
}

// MissesEnds reports whether a transport may not notice that the process of a peer ends.
func (t *Table) MissesEnds() bool { return t.missesEnds }

// Peer returns the peer with a rank.
func (t *Table) Peer(rank world.Rank) *Peer {
	if p := t.recent; p != nil && p.Rank == rank {
		return p
	}
	return t.lookUp(rank)
}

func (t *Table) lookUp(rank world.Rank) *Peer {
	page := &t.pages[rank/pageSize]
	if *page == nil {
		*page = make([]*Peer, min(pageSize, t.size-int(rank)/pageSize*pageSize))
	}
	p := (*page)[rank%pageSize]
	if p == nil {
		p = &Peer{Rank: rank, can: &nowhere.can}
		(*page)[rank%pageSize] = p
	}
	if p.tr == nil && p.Lost == nil {
		if w := t.route(rank); w != nil {
			p.use(w)
		}
	}
	if p.tr != nil {
		t.recent = p
	}
	return p
}

// route returns the first transport that reaches rank, nil if there is none.
func (t *Table) route(rank world.Rank) *way {
	for _, tr := range t.transports {
		if tr.Reaches(rank) {
			return tr
		}
	}
	return nil
}

// All yields the peers that were looked up.
func (t *Table) All(yield func(*Peer) bool) {
	for _, page := range t.pages {
		for _, p := range page {
			if p != nil && !yield(p) {
				return
			}
		}
	}
}

// Of othersEvery polls, one includes the transports that do not reach the awaited peer: a poll of
// sockets costs as much as ten of memory.
const othersEvery = 32

// Poll moves all that can be moved now, and returns the number of events. Poll looks first at
// rank hint, and mostly only at the transport that reaches this rank.
func (t *Table) Poll(hint world.Rank) (n int) {
	t.polls++
	if hint >= 0 && t.polls%othersEvery != 0 {
		if p := t.Peer(hint); p.tr != nil {
			return p.tr.Poll(hint)
		}
	}
	for _, tr := range t.transports {
		n += tr.Poll(hint)
	}
	return n
}

// Arm prepares for the caller to sleep, as transport.Transport defines.
func (t *Table) Arm() bool {
	for _, tr := range t.transports {
		if !tr.Arm() {
			return false
		}
	}
	return true
}

// Pending reports whether a transport has frames or connections that need Poll.
func (t *Table) Pending() bool {
	for _, r := range t.progressers {
		if r.Pending() {
			return true
		}
	}
	return false
}

// Deadline returns how soon Poll has to be called at the latest, 0 if time makes no difference.
func (t *Table) Deadline() (d time.Duration) {
	for _, r := range t.progressers {
		if n := time.Duration(r.Deadline()); n > 0 && (d == 0 || n < d) {
			d = n
		}
	}
	return d
}

// Close asks all transports to close, as transport.Transport defines.
func (t *Table) Close(force bool) bool {
	all := true
	for _, tr := range t.transports {
		all = tr.Close(force) && all
	}
	return all
}

// Detach makes the transports give up a rank whose process has ended.
func (t *Table) Detach(rank world.Rank) {
	for _, tr := range t.transports {
		if tr.can.Detacher != nil {
			tr.can.Detacher.Detach(rank)
		}
	}
}

// Carried returns the traffic of each transport, by name, without idle transports.
func (t *Table) Carried() map[string]Carried {
	all := map[string]Carried{}
	for p := range t.All {
		if p.tr == nil || p.Carried.Messages == 0 {
			continue
		}
		c := all[p.tr.Name()]
		c.Messages += p.Carried.Messages
		c.Bytes += p.Carried.Bytes
		all[p.tr.Name()] = c
	}
	return all
}
