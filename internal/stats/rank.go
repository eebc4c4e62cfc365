package stats

import (
	"sync/atomic"
	"unsafe"

	"gompi/internal/seg"
)

// Which calls are timed: all of a site up to warmUp, and those of sites whose calls take Short or
// longer on average, in nanoseconds. Of the others it is one in Sampled.
const (
	Short   = 2000
	Sampled = 1 << sampledBits
	warmUp  = 256

	sampledBits = 4
)

// isSampled reports whether the n-th call of a site is one of those. They come at distances that
// change, so that nothing that a program does in every 16th call is missed, or all that is seen. n
// is another on each rank: if all read the clock in one collective, each would wait for the others
// to.
func isSampled(n uint64) bool { return n*odd>>(64-sampledBits) == 0 }

const odd = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio

// A Rank counts the calls of one rank, while it is on. A nil *Rank is never. Methods may be called
// from any goroutine, do not block, and allocate nothing but when they meet a site for the first
// time.
type Rank struct {
	area
	place  func() string
	worlds []int32 // of the host's ranks
	mpi    bool    // C counts the calls: here only bytes and messages are
	on     atomic.Bool
	open   func() (*Memory, error) // of one that a tool turns on, else nil
	local  int
}

// Rank returns a local rank's own view. place returns where in the program the calling goroutine
// is, "" if that is not known. mpi says that the rank's program is one of MPI.
func (m *Memory) Rank(local int, place func() string, mpi bool) *Rank {
	r := &Rank{place: place, mpi: mpi, local: local}
	r.use(m)
	r.on.Store(true)
	return r
}

// Later returns the view of a local rank of a program of MPI without -stats, which counts while a
// tool in its process has it do so, in memory that open returns then.
func Later(local int, open func() (*Memory, error)) *Rank {
	return &Rank{mpi: true, local: local, open: open}
}

func (r *Rank) use(m *Memory) {
	r.area, r.worlds = m.area(r.local), m.worlds()
	r.seed, r.clock = uint64(r.local)*odd, clockCost()
}

// On reports whether calls are counted.
func (r *Rank) On() bool { return r != nil && r.on.Load() }

// Turn turns one that Later has returned on or off; others stay on. What was counted stays. It is
// called by one goroutine at a time, and may be while others make calls: those under way are
// counted in part.
func (r *Rank) Turn(on bool) error {
	switch {
	case r.open == nil:
		return nil
	case on && r.counters == nil:
		m, err := r.open()
		if err != nil {
			return err
		}
		r.use(m) // before on is true, without which nobody looks at it
	}
	r.on.Store(on)
	return nil
}

// clockCost returns what it takes to read the clock.
func clockCost() int64 {
	best := int64(1 << 62)
	for range 20 {
		begin := seg.Now()
		best = min(best, seg.Now()-begin)
	}
	return best
}

// ForC returns where the rank's area begins, nil if there is none yet, and the ranks in the job by
// local rank, as int32.
func (r *Rank) ForC() (counters, worlds unsafe.Pointer) {
	return unsafe.Pointer(r.counters), unsafe.Pointer(unsafe.SliceData(r.worlds))
}

// Begun notes that the rank has joined its job.
func (r *Rank) Begun() {
	if r.On() {
		r.begun.CompareAndSwap(0, seg.Now())
	}
}

// Left notes that the rank leaves its job.
func (r *Rank) Left() {
	if r.On() {
		r.left.Store(seg.Now())
	}
}

// A Span is a call that is counted. The zero Span is one that is not.
type Span struct {
	r      *Rank
	site   *site
	begin  int64 // 0 if it is not timed
	bytes  int
	stands int64 // for so many calls
	peer   int32 // in the job, -1 for none
	tag    int32
}

// Begin counts a call of so many bytes, and fills its Span, which is zero. Its caller is a function
// of comm that programs call, or one that such a function calls. (A Span that it returned would be
// copied, which waits for what has just been stored: 8 ns.)
//
//go:noinline
func (r *Rank) Begin(sp *Span, op Op, bytes int) {
	if r.mpi {
		if bytes > 0 {
			r.moved.Add(uint64(bytes))
		}
		return
	}
	key := callers(uint64(op))
	s := &r.sites[home(key)]
	if s.key.Load() != key {
		if s = r.find(key, op); s == nil {
			r.uncounted.Add(1)
			return
		}
	}
	n := s.calls.Add(1)
	if bytes > 0 {
		s.bytes.Add(uint64(bytes))
	}
	sp.site, sp.stands = s, 1
	if s.short.Load() != 0 {
		if !isSampled(n + r.seed) {
			return
		}
		sp.stands = Sampled
	}
	sp.r, sp.bytes, sp.peer, sp.tag, sp.begin = r, bytes, -1, -1, seg.Now()
}

// home returns where the site with a key is, if nothing else is there.
func home(key uint64) uint64 { return key >> 40 * (Sites - spare) >> 24 }

// find returns the site with a key. Where there is no room for another it is one for all calls of
// op from other places, nil if there is no room for that, too.
func (r *Rank) find(key uint64, op Op) *site {
	for i := range uint64(probes) {
		if s := r.at(key, (home(key)+i)%(Sites-spare), op); s != nil {
			return s
		}
	}
	key = uint64(op)<<1 | 1
	for i := range uint64(probes) {
		if s := r.at(key, Sites-spare+(key>>1+i)%spare, op); s != nil {
			return s
		}
	}
	return nil
}

// probes bounds where a site is looked for, and spare are those for calls from other places.
const probes, spare = 16, 64

// at returns the site at a place of the table, if that has a key or can have it.
func (r *Rank) at(key, i uint64, op Op) *site {
	s := &r.sites[i]
	old := s.key.Load()
	if old == key {
		return s
	}
	if old == 0 && s.key.CompareAndSwap(0, key) {
		r.name(s, op, i < Sites-spare)
		return s
	}
	if s.key.Load() == key { // another goroutine's, just now
		return s
	}
	return nil
}

func (r *Rank) name(s *site, op Op, known bool) {
	copy(s.op[:], op.String())
	text := "elsewhere"
	if known {
		text = r.place()
	}
	copy(s.place[:], text[max(0, len(text)-len(s.place)):])
	s.named.Store(1)
}

// On reports whether the call is timed.
func (sp *Span) On() bool { return sp.begin != 0 }

// Message notes with which rank of the job, and which tag, a call exchanges a message.
func (r *Rank) Message(sp *Span, peer, tag int) {
	if sp.peer, sp.tag = int32(peer), int32(tag); r.mpi {
		r.peer.Store(int64(peer))
		r.tag.Store(int64(tag))
	}
}

// Received adds the bytes of a message that has come, of a call that began without.
func (r *Rank) Received(sp *Span, bytes int) {
	switch {
	case bytes <= 0:
	case r.mpi:
		r.moved.Add(uint64(bytes))
	case sp.site != nil:
		sp.site.bytes.Add(uint64(bytes))
		sp.bytes += bytes
	}
}

// Sent counts a message to a rank of the job.
func (r *Rank) Sent(to, bytes int) {
	if to < len(r.peers) {
		r.peers[to].messages.Add(1)
		r.peers[to].bytes.Add(uint64(bytes))
	}
}

// End ends the call.
func (sp *Span) End() {
	s := sp.site
	if sp.begin == 0 {
		return
	}
	took := max(0, seg.Now()-sp.begin-sp.r.clock)
	if took > warmUp*Short { // something held this one up, not those that it stands for
		sp.stands = 1
	}
	s.timed.Add(1)
	total := s.time.Add(took * sp.stands)
	if least := s.fastest.Load(); least == 0 || took < least-1 {
		s.fastest.Store(took + 1)
	}
	if took > s.slowest.Load() {
		s.slowest.Store(took)
	}
	if len(sp.r.events) > 0 {
		sp.r.write(sp, took)
	} else if calls := int64(s.calls.Load()); calls > warmUp && (total < calls*Short) != (s.short.Load() != 0) {
		s.short.Store(1 - s.short.Load())
	}
}

// write writes the call to the ring.
func (r *Rank) write(sp *Span, took int64) {
	n := r.next.Add(1) - 1
	e := &r.events[n%uint64(len(r.events))]
	e.stamp.Store(0)
	e.begin, e.duration = sp.begin, took
	e.site, e.peer, e.tag = r.indexOf(sp.site), sp.peer, sp.tag
	atomic.StoreUint64(&e.bytes, uint64(sp.bytes))
	e.stamp.Store(n + 1)
}
