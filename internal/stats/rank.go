package stats

import (
	"sync/atomic"
	"unsafe"

	"gompi/internal/seg"
)

// Timed are the first warmUp calls of a site, and all calls of sites with an average of at least
// Short, in nanoseconds. Of other calls one in Sampled is timed.
//
//c:const GOMPI_STATS_
const (
	Short   = 2000
	Sampled = 1 << sampledBits
	warmUp  = 256
	Long    = 256 * Short // a longer call stands for itself alone

	sampledBits = 4
)

// isSampled reports whether the n-th call of a site is sampled. The distances between sampled calls
// vary, so that an action in every 16th call is neither missed nor the only one seen. n differs
// between ranks: if all ranks read the clock in the same collective, each would wait for the
// others' reads.
func isSampled(n uint64) bool { return n*odd>>(64-sampledBits) == 0 }

// odd is 2^64 divided by the golden ratio.
//
//c:const GOMPI_STATS_
const odd = 0x9e3779b97f4a7c15

// A Rank counts the calls of one rank while it is on. A nil *Rank is never on. Methods may be
// called from any goroutine, do not block, and allocate only at the first call of a site.
type Rank struct {
	area
	place  func() string
	worlds []int32                    // of the host's ranks
	count  func(bytes, peer, tag int) // for MPI programs, whose calls C counts: tells C of bytes and messages
	on     atomic.Bool
	open   func() (*Memory, error) // for Later: opens the memory; else nil
	local  int
	sleeps *Sleeps
}

// Sleeps are a rank's waits that have slept, the long ones. The progress engine reports them: only
// one wait begins or ends at a time.
type Sleeps struct {
	begun atomic.Uint64 // waits
	// The wait that ended last: its number, and its duration. number is 0 during a change, so that
	// no reader takes another wait's duration.
	number atomic.Uint64
	took   atomic.Int64
}

// Begin notes that a wait begins to sleep, and returns the wait's number.
func (s *Sleeps) Begin() uint64 { return s.begun.Add(1) }

// End notes that the wait with a number has ended.
func (s *Sleeps) End(number uint64, took int64) {
	s.number.Store(0)
	s.took.Store(took)
	s.number.Store(number)
}

// since returns the duration of the wait that ended last if its number is above begun, else 0. A
// call that began at that count has then lasted at least as long, whichever goroutine has waited.
// All accesses are sequentially consistent.
func (s *Sleeps) since(begun uint64) int64 {
	n := s.number.Load()
	took := s.took.Load()
	if n <= begun || s.number.Load() != n {
		return 0
	}
	return took
}

// Rank returns a local rank's own view. place returns the call site of the calling goroutine in the
// program, "" if unknown.
func (m *Memory) Rank(local int, place func() string) *Rank {
	r := &Rank{place: place, local: local, sleeps: new(Sleeps)}
	r.use(m)
	return r
}

// RankOfMPI is Rank for an MPI program, whose calls C counts. count adds bytes to this thread's
// present call, and notes the world rank (-1 for none) and the tag of its message.
func (m *Memory) RankOfMPI(local int, count func(bytes, peer, tag int)) *Rank {
	r := &Rank{count: count, local: local}
	r.use(m)
	return r
}

// Later is RankOfMPI without -stats. It counts only while a tool in the process has turned it on,
// in the memory that open returns.
func Later(local int, count func(bytes, peer, tag int), open func() (*Memory, error)) *Rank {
	return &Rank{count: count, local: local, open: open}
}

func (r *Rank) use(m *Memory) {
	r.area, r.worlds = m.area(r.local), m.worlds()
	r.seed, r.clock = uint64(r.local)*odd, clockCost()
	r.on.Store(true) // only then are the fields read
}

// On reports whether calls are counted.
func (r *Rank) On() bool { return r != nil && r.on.Load() }

// Turn turns a Rank from Later on or off; other ranks stay on. The counts remain. One goroutine at
// a time may call it, while other goroutines make calls: calls under way are counted in part.
func (r *Rank) Turn(on bool) error {
	switch {
	case r.open == nil:
		return nil
	case on && r.counters == nil:
		m, err := r.open()
		if err != nil {
			return err
		}
		r.use(m)
	}
	r.on.Store(on)
	return nil
}

// clockCost returns the cost of reading the clock.
func clockCost() int64 {
	best := int64(1 << 62)
	for range 20 {
		begin := seg.Now()
		best = min(best, seg.Now()-begin)
	}
	return best
}

// Sleeps returns the Sleeps to which slept waits are reported, or nil.
func (r *Rank) Sleeps() *Sleeps {
	if r == nil || r.count != nil { // C times its calls itself
		return nil
	}
	return r.sleeps
}

// ForC returns the address of the rank's area, or nil, and the world ranks by local rank, as int32.
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

// A Place is a call site that a program outside Go names. The zero Place is none.
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

// key is never 0, like the result of callers.
func (p *Place) key(op Op) uint64 { return (p.hash^uint64(op))*odd | 1 }

// A Span is a call under way. The zero Span is not counted.
type Span struct {
	r      *Rank
	site   *site
	begin  int64 // 0 if the call is not timed
	bytes  int
	op     Op
	stands int64  // number of calls for which it stands
	slept  uint64 // waits that had begun to sleep before the call, if it is not timed
	peer   int32  // world rank, -1 for none
	tag    int32
}

// Begin counts a call of a number of bytes and fills its Span, which is zero. The caller is a
// function of core that the program calls, or is called by such a function. at is the program's
// call site if the program names it, else nil. (A returned Span would be copied, and the copy would
// wait for the stores just made: 8 ns.)
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
	n := atomic.AddInt64(&s.Calls, 1)
	if bytes > 0 {
		atomic.AddInt64(&s.Bytes, int64(bytes))
	}
	sp.site, sp.stands, sp.op = s, 1, op
	if s.isShort.Load() != 0 {
		if !isSampled(uint64(n) + r.seed) {
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

// serves reports whether a site is the wait of a thread that serves other ranks' requests, as
// torch's store on rank 0 and other C libraries over gompi have. That time is not the program's.
func (s *site) serves(op Op) bool { return op == Probe && s.place[0] == 0 }

// home returns the first place in the table for a site with this key.
func home(key uint64) uint64 { return key >> 40 * (Sites - spare) >> 24 }

// find returns the site with a key. If the table has no room for another site, it returns the site
// for all other calls of op, or nil if that has no room either.
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

// probes bounds the search for a site. spare is the number of sites for calls from other places.
//
//c:const GOMPI_STATS_
const probes, spare = 16, 64

// at returns the i-th site of the table if it has the key, or is free and takes it.
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
	if s.key.Load() == key { // another goroutine has just taken it
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

// Message notes the world rank and the tag of a call's message.
func (r *Rank) Message(sp *Span, peer, tag int) {
	if sp.peer, sp.tag = int32(peer), int32(tag); r.count != nil && len(r.events) > 0 {
		r.count(0, peer, tag)
	}
}

// move counts bytes of an MPI program.
func (r *Rank) move(bytes int) {
	if bytes > 0 {
		r.moved.Add(uint64(bytes))
		r.count(bytes, -1, 0)
	}
}

// Received adds the bytes of a received message to a call that began without them.
func (r *Rank) Received(sp *Span, bytes int) {
	switch {
	case bytes <= 0:
	case r.count != nil:
		r.move(bytes)
	case sp.site != nil:
		atomic.AddInt64(&sp.site.Bytes, int64(bytes))
		sp.bytes += bytes
	}
}

// Sent counts a message to a world rank.
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
	if took > Long { // a delay of this call alone
		sp.stands = 1
	}
	if !s.serves(sp.op) {
		sp.r.exit(sp.begin, now, sp.stands-1)
	}
	total := s.took(took, sp.stands)
	if len(sp.r.events) > 0 {
		sp.r.write(sp, took)
	} else if calls := atomic.LoadInt64(&s.Calls); calls > warmUp && (total < calls*Short) != (s.isShort.Load() != 0) {
		s.isShort.Store(1 - s.isShort.Load())
	}
}

// took adds a call of a duration, which stands for a number of calls. It returns the time of all
// calls.
func (s *site) took(took, stands int64) (total int64) {
	atomic.AddInt64(&s.Timed, 1)
	if least := atomic.LoadInt64(&s.Fastest); least == 0 || took < least-1 {
		atomic.StoreInt64(&s.Fastest, took+1)
	}
	if took > atomic.LoadInt64(&s.Slowest) {
		atomic.StoreInt64(&s.Slowest, took)
	}
	return atomic.AddInt64(&s.Time, took*stands)
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
