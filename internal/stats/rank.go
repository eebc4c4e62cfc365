package stats

import (
	"sync/atomic"
	"unsafe"

	"gompi/internal/seg"
)

// Which calls are timed: all of a site up to warmUp, and those of sites whose calls take Short or
// longer on average, in nanoseconds. Of the others it is one in Sampled.
//
//c:const GOMPI_STATS_
const (
	Short   = 2000
	Sampled = 1 << sampledBits
	warmUp  = 256
	Long    = 256 * Short // a call that takes longer stands for itself alone

	sampledBits = 4
)

// isSampled reports whether the n-th call of a site is one of those. They come at distances that
// change, so that nothing that a program does in every 16th call is missed, or all that is seen. n
// is another on each rank: if all read the clock in one collective, each would wait for the others
// to.
func isSampled(n uint64) bool { return n*odd>>(64-sampledBits) == 0 }

// odd is 2^64 divided by the golden ratio.
//
//c:const GOMPI_STATS_
const odd = 0x9e3779b97f4a7c15

// A Rank counts the calls of one rank, while it is on. A nil *Rank is never. Methods may be called
// from any goroutine, do not block, and allocate nothing but when they meet a site for the first
// time.
type Rank struct {
	area
	place  func() string
	worlds []int32                    // of the host's ranks
	count  func(bytes, peer, tag int) // nil, or C counts the calls, and is told of bytes and messages
	on     atomic.Bool
	open   func() (*Memory, error) // of one that a tool turns on, else nil
	local  int
	sleeps *Sleeps
}

// Sleeps are what a rank knows of the waits in which it has slept, which are those that take long.
// Its progress engine tells it of them: one wait at a time begins, or ends.
type Sleeps struct {
	begun atomic.Uint64 // waits
	// The wait that ended last: which of those begun it is, and how long it took. number is 0 while
	// the two are changed, so that no reader takes the time of another wait.
	number atomic.Uint64
	took   atomic.Int64
}

// Begin notes that a wait begins to sleep, and returns its number.
func (s *Sleeps) Begin() uint64 { return s.begun.Add(1) }

// End notes that the wait with a number has ended.
func (s *Sleeps) End(number uint64, took int64) {
	s.number.Store(0)
	s.took.Store(took)
	s.number.Store(number)
}

// since returns how long the wait took that ended last, if it began after so many others, else 0.
// A call that has that many at its beginning has then lasted at least as long, whichever goroutine
// has waited. All accesses are sequentially consistent.
func (s *Sleeps) since(begun uint64) int64 {
	n := s.number.Load()
	took := s.took.Load()
	if n <= begun || s.number.Load() != n {
		return 0
	}
	return took
}

// Rank returns a local rank's own view. place returns where in the program the calling goroutine
// is, "" if that is not known.
func (m *Memory) Rank(local int, place func() string) *Rank {
	r := &Rank{place: place, local: local, sleeps: new(Sleeps)}
	r.use(m)
	r.on.Store(true)
	return r
}

// RankOfMPI is Rank for a program of MPI, whose calls C counts. count adds bytes to the call that
// this thread is in, and notes with which rank, -1 for none, and tag it exchanges a message.
func (m *Memory) RankOfMPI(local int, count func(bytes, peer, tag int)) *Rank {
	r := &Rank{count: count, local: local}
	r.use(m)
	r.on.Store(true)
	return r
}

// Later is RankOfMPI without -stats: it counts while a tool in its process has it do so, in memory
// that open returns then.
func Later(local int, count func(bytes, peer, tag int), open func() (*Memory, error)) *Rank {
	return &Rank{count: count, local: local, open: open}
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

// Sleeps is what to tell of waits that sleep, nil if nobody wants to know.
func (r *Rank) Sleeps() *Sleeps {
	if r == nil || r.count != nil { // C has the times of its calls
		return nil
	}
	return r.sleeps
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

// A Place is where a program that is not in Go says that it is. The zero Place is none.
type Place struct {
	name string
	hash uint64
}

// NewPlace returns a place by its name, "train.py:31".
func NewPlace(name string) *Place {
	p := &Place{name: name}
	for _, c := range []byte(name) {
		p.hash = (p.hash ^ uint64(c)) * odd
	}
	return p
}

// key is never 0, as that of callers.
func (p *Place) key(op Op) uint64 { return (p.hash^uint64(op))*odd | 1 }

// A Span is a call that is counted. The zero Span is one that is not.
type Span struct {
	r      *Rank
	site   *site
	begin  int64 // 0 if it is not timed
	bytes  int
	op     Op
	stands int64  // for so many calls
	slept  uint64 // before it, if it is not timed
	peer   int32  // in the job, -1 for none
	tag    int32
}

// Begin counts a call of so many bytes, and fills its Span, which is zero. Its caller is a function
// of core that faces call, or one that such a function calls. at is where the program is, if that
// knows it itself, else nil. (A Span that it returned would be copied, which waits for what has
// just been stored: 8 ns.)
//
//go:noinline
func (r *Rank) Begin(sp *Span, op Op, bytes int, at *Place) {
	if r.count != nil {
		r.move(bytes)
		return
	}
	var key uint64
	if at == nil {
		key = callers(uint64(op))
	} else {
		key = at.key(op)
	}
	s := &r.sites[home(key)]
	if s.key.Load() != key {
		if s = r.find(key, op, at); s == nil {
			r.uncounted.Add(1)
			return
		}
	}
	n := s.calls.Add(1)
	if bytes > 0 {
		s.bytes.Add(uint64(bytes))
	}
	sp.site, sp.stands, sp.op = s, 1, op
	if s.isShort.Load() != 0 {
		if !isSampled(n + r.seed) {
			sp.r, sp.slept = r, r.sleeps.begun.Load()
			return
		}
		sp.stands = Sampled
	}
	sp.r, sp.bytes, sp.peer, sp.tag, sp.begin = r, bytes, -1, -1, seg.Now()
	if !s.serves(op) {
		r.latest.Store(int64(r.indexOf(s)))
		r.enter(sp.begin)
	}
}

// serves reports whether a site is where a thread waits that serves others, not the program:
// torch's store on rank 0, and others over gompi for C, wait so for what they are asked.
func (s *site) serves(op Op) bool { return op == Probe && s.place[0] == 0 }

// home returns where the site with a key is, if nothing else is there.
func home(key uint64) uint64 { return key >> 40 * (Sites - spare) >> 24 }

// find returns the site with a key. Where there is no room for another it is one for all calls of
// op from other places, nil if there is no room for that, too.
func (r *Rank) find(key uint64, op Op, at *Place) *site {
	for i := range uint64(probes) {
		if s := r.at(key, (home(key)+i)%(Sites-spare), op, at); s != nil {
			return s
		}
	}
	key = uint64(op)<<1 | 1
	for i := range uint64(probes) {
		if s := r.at(key, Sites-spare+(key>>1+i)%spare, op, at); s != nil {
			return s
		}
	}
	return nil
}

// probes bounds where a site is looked for, and spare are those for calls from other places.
//
//c:const GOMPI_STATS_
const probes, spare = 16, 64

// at returns the site at a place of the table, if that has a key or can have it.
func (r *Rank) at(key, i uint64, op Op, at *Place) *site {
	s := &r.sites[i]
	old := s.key.Load()
	if old == key {
		return s
	}
	if old == 0 && s.key.CompareAndSwap(0, key) {
		r.name(s, op, i < Sites-spare, at)
		return s
	}
	if s.key.Load() == key { // another goroutine's, just now
		return s
	}
	return nil
}

func (r *Rank) name(s *site, op Op, known bool, at *Place) {
	copy(s.op[:], op.String())
	text := "elsewhere"
	switch {
	case known && at != nil:
		text = at.name
	case known:
		text = r.place()
	}
	copy(s.place[:], text[max(0, len(text)-len(s.place)):])
	s.named.Store(1)
}

// On reports whether the call is counted.
func (sp *Span) On() bool { return sp.site != nil }

// Message notes with which rank of the job, and which tag, a call exchanges a message.
func (r *Rank) Message(sp *Span, peer, tag int) {
	if sp.peer, sp.tag = int32(peer), int32(tag); r.count != nil && len(r.events) > 0 {
		r.count(0, peer, tag)
	}
}

// move counts bytes of a program of MPI.
func (r *Rank) move(bytes int) {
	if bytes > 0 {
		r.moved.Add(uint64(bytes))
		r.count(bytes, -1, 0)
	}
}

// Received adds the bytes of a message that has come, of a call that began without.
func (r *Rank) Received(sp *Span, bytes int) {
	switch {
	case bytes <= 0:
	case r.count != nil:
		r.move(bytes)
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
	switch {
	case s == nil:
		return
	case sp.begin == 0:
		if took := sp.r.sleeps.since(sp.slept); took > Long {
			if !s.serves(sp.op) {
				sp.r.busy.Add(took)
			}
			s.took(took, 1)
		}
		return
	}
	now := seg.Now()
	took := max(0, now-sp.begin-sp.r.clock)
	if took > Long { // something held this one up, not those that it stands for
		sp.stands = 1
	}
	if !s.serves(sp.op) {
		sp.r.exit(sp.begin, now, sp.stands-1)
	}
	total := s.took(took, sp.stands)
	if len(sp.r.events) > 0 {
		sp.r.write(sp, took)
	} else if calls := int64(s.calls.Load()); calls > warmUp && (total < calls*Short) != (s.isShort.Load() != 0) {
		s.isShort.Store(1 - s.isShort.Load())
	}
}

// took notes that a call took so long, and stands for so many. It returns the time of all calls.
func (s *site) took(took, stands int64) (total int64) {
	s.timed.Add(1)
	if least := s.fastest.Load(); least == 0 || took < least-1 {
		s.fastest.Store(took + 1)
	}
	if took > s.slowest.Load() {
		s.slowest.Store(took)
	}
	return s.time.Add(took * stands)
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
