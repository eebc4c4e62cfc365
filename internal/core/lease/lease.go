// Package lease lets C send and receive short messages, do short collectives (team.go), and
// access windows (window.go), without entering Go.
//
// An MPI call that enters Go costs 50 ns, and 1 to 37 us when the program has computed for a
// while. So while nothing is under way that only Go can serve, Go lends C the state for short
// messages: the cursors of the shared-memory rings to some peers, the credit there, and the
// numbers of some communicators. C finishes an operation whole or does not begin it, and calls Go
// instead. C raises no error and never sleeps.
//
// C posts receives, too, and matches incoming messages as Go does: a message goes to the first
// posted receive that matches. Go does not see C's receives. The first call that enters Go moves
// them to Go's queue, in their order, before anything else is posted (TakeOver). While Go has
// receives posted on a communicator or keeps its messages, the communicator is not lent: only one
// of Go and C has a queue of each.
//
// # Who owns the state
//
// The lock of the rank's progress engine guards all of it. Every Lock of the engine first recalls
// the lease. The word of the Record says who has the lease:
//
//	none  Go
//	lent  C may take it: compare-and-swap to busy
//	busy  a thread is inside C; it stores lent at the end of an operation
//
// Recall swaps lent for none. While the word is busy Recall asks for the lease, by wanted, and
// looks again: an operation takes less than a microsecond, and a waiting receive looks at wanted
// each turn. C does not take a wanted lease. So Recall waits only until the thread inside C has
// run.
//
// C takes the lease with an acquiring and gives it back with a releasing operation, and so does
// Go: each sees the other's stores. The rest of the order is package shm's: a record's word is
// stored after the record, and then the writer looks whether the reader sleeps, both sequentially
// consistent.
//
// The cursors stay in Go's integers, which C reads and stores through pinned pointers: nothing is
// copied, and a recall costs a compare-and-swap. The Record lies in memory that a forked child
// finds zeroed: its word is none, so that a child never writes to its parent's rings.
package lease

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"gompi/transport"
)

// Limits of a lease: communicators by slot, peers by local rank, and datatypes by number.
//
//c:const GOMPI_LEASE_
const (
	Channels = 256
	Peers    = 1024
	Sizes    = 1024
	Held     = 256 // receives that C holds
)

// The words.
//
//c:const GOMPI_LEASE_
const (
	none = iota
	lent
	busy
)

// operations is the number of operations that C makes before it enters Go, which may have other
// work.
const operations = 4096

// A Record is the memory that Go and C share.
//
//c:struct gompi_lease
type Record struct {
	word   atomic.Uint32
	wanted atomic.Uint32
	stamp  uint32 // of this lease: entries with this stamp are lent
	left   uint32 // operations until C has to enter Go

	Spin   uint32 // how often a receive looks for its message
	Most   uint32 // bytes of the longest message that C sends
	Credit int64  // cost of all messages to a peer for which it has returned no credit
	Type   uint32 // of all messages, as in their headers
	Mix    uint32 // C leaves operations to Go at random

	missed     atomic.Uint32 // C has entered Go for want of a lease
	missedComm int32         // the communicator's number
	missedRank int32         // and the peer's in it, negative for any peer
	vain       uint32        // looks since the last success: C's
	holds      atomic.Uint32 // receives that C holds
	first      uint32        // of the posted receives, as next
	last       uint32        // and the last
	place      uint32        // where C looks for a free place
	missedTeam atomic.Uint32 // 1 more than the number of a communicator whose Team C has missed
	_          [52]byte

	channels [Channels]channel
	peers    [Peers]peer
	routes   [Channels][Peers]uint16 // by rank: 1 more than the local rank, 0 if unknown
	sizes    [Sizes]uint8            // of contiguous elements, 0 of others
	derived  [Sizes]Shape            // of the program's, by handle
	held     [Held]held

	elements  [Sizes]uint8     // of datatypes: a mem.Type
	operators [Operators]uint8 // a mem.Op
	teams     [Channels]Team
	//c:type struct gompi_window *
	windows [Windows]atomic.Uintptr // each a *Window
}

// A channel is a communicator.
//
//c:struct gompi_channel
type channel struct {
	stamp   uint32
	size    int32
	used    uint32
	whole   uint32 // all other members are peers that are lent, too
	context uint64
}

// A held is a receive that C has posted and Go does not see.
//
//c:struct gompi_held
type held struct {
	state       atomic.Uint32
	slot        int32
	source, tag int32 // of the receive, then of its message
	bytes       int64 // of the buffer, then of the message
	run, stride int64 // the buffer is runs of as many bytes, stride apart
	//c:type void *
	buf        uintptr
	next, prev uint32 // posted receives in order: 1 more than the place, 0 at the ends
}

// The states of a held.
//
//c:const GOMPI_HELD_
const (
	free = iota
	posted
	arrived
	taken // Go's
)

// A peer is another rank of this host: addresses of Go's integers, which are constant.
//
//c:struct gompi_peer
type peer struct {
	transport.Ends
	//c:type struct gompi_credit *
	credit unsafe.Pointer // spent, and owed
	//c:type struct gompi_carried *
	carried unsafe.Pointer // messages and bytes
	stamp   uint32
	used    uint32
	local   int32
	_       int32
}

// A Lease lends the contents of a Record.
type Lease struct {
	rec    *Record
	lock   sync.Locker   // of the progress engine: its Lock recalls the lease
	place  atomic.Uint32 // where Take looks
	lapsed atomic.Bool   // the last lease was taken back after C had used it
	pinner runtime.Pinner

	passes   sync.Mutex       // held while receives pass from C to Go or back
	passing  bool             // receives do: nothing is lent
	lender   transport.Lender // that has the rings
	channels []lentChannel
	peers    []lentPeer
}

// Record returns the memory shared with C.
func (l *Lease) Record() *Record { return l.rec }

// looks is the number of takeBack's looks between two yields, and yields the number of its yields
// before it sleeps. The thread inside C has mostly lost this very processor to this thread, which
// then has to give the processor back: running other goroutines instead took a millisecond.
const looks, yields = 100, 20

// Recall takes the lease back. The caller has the lock.
func (l *Lease) Recall() {
	r := l.rec
	if r.word.Load() == none {
		return
	}
	defer func() { l.lapsed.Store(r.left < operations) }()
	if r.word.CompareAndSwap(lent, none) {
		return
	}
	r.wanted.Store(1)
	takeBack(&r.word)
	r.wanted.Store(0)
}

// takeBack stores none in a word once no thread is inside C. The result is false if the word was
// none already: then a signal handler has interrupted the thread inside C, which will not continue.
func takeBack(word *atomic.Uint32) bool {
	for i := 1; !word.CompareAndSwap(lent, none); i++ {
		switch {
		case word.Load() == none:
			return false
		case i%looks != 0:
		case i < looks*yields:
			yieldProcessor()
		default:
			time.Sleep(50 * time.Microsecond)
		}
	}
	return true
}

// Missed reports, once, that C has no lease and needs a lease, for an operation with a rank of a
// communicator. The operation is the one for which C has entered Go or, in a test, C's last
// operation. Missed also reports a lease that C had used and Go has recalled, as each collective
// does: a new lease spares C the next call of Go, which takes long after the program has computed.
func (l *Lease) Missed() (comm, rank int, tests, ok bool) {
	r := l.rec
	if r.missed.Load() == 0 && !l.lapsed.Load() { // which is mostly so, and costs no more than two loads
		return 0, 0, false, false
	}
	l.lapsed.Store(false)
	return int(r.missedComm), int(r.missedRank), r.missed.Swap(0) == missedTest, true
}

// missedTest is the value of missed after a test, where 1 is any other call.
//
//c:const GOMPI_LEASE_
const missedTest = 2

// Begin begins to prepare a lease. expired reports whether C had made all operations of the last
// lease.
func (l *Lease) Begin() (expired bool) {
	l.rec.stamp++
	expired = l.rec.left == 0
	l.rec.left = operations
	return expired
}

// Size sets the size of a datatype whose elements are contiguous, without gaps between them.
func (l *Lease) Size(datatype, size int) {
	if datatype < Sizes && size <= 255 {
		l.rec.sizes[datatype] = uint8(size)
	}
}

// A Shape is an element of a datatype: runs of Run bytes, Stride bytes apart, the first at Off,
// Size bytes in all. If Run and Stride are Size, elements follow each other without a gap.
//
//c:struct gompi_shape
type Shape struct {
	Size, Run   uint32
	Stride, Off int32
}

// Derived sets the Shape of an element of the program's datatype with a number: the zero Shape if
// the element has no such form, or the datatype was freed.
func (l *Lease) Derived(datatype int, s Shape) {
	if l != nil && datatype < Sizes {
		l.rec.derived[datatype] = s
	}
}

// A Receive is a receive that C has held. Source, Tag and Bytes are the receive's, and the
// message's after it has Arrived. At Buf there are runs of Run bytes, Stride bytes apart.
type Receive struct {
	Place       int
	Slot        int
	Source, Tag int
	Bytes       int
	Run, Stride int
	Buf         uintptr
	Arrived     bool
}

// Holds reports whether C holds receives, without a lock. Without a Lease C holds none.
func (l *Lease) Holds() bool { return l != nil && l.rec.holds.Load() != 0 }

// TakeOver calls f for the receives that C holds: posted receives in order, then receives whose
// message has arrived. From then until Free they belong to Go. Holds reports true until Go has all
// of them. f posts these receives before any others: meanwhile nothing is lent, and other callers
// wait.
func (l *Lease) TakeOver(f func(Receive)) {
	l.passes.Lock()
	defer l.passes.Unlock()
	l.setPassing(true)
	defer l.setPassing(false)
	r := l.rec
	take := func(i int) {
		h := &r.held[i]
		arrived := h.state.Swap(taken) == arrived
		f(Receive{
			Place: i, Slot: int(h.slot), Source: int(h.source), Tag: int(h.tag),
			Bytes: int(h.bytes), Run: int(h.run), Stride: int(h.stride), Buf: h.buf, Arrived: arrived,
		})
	}
	for at, n := r.first, 0; at != 0 && n < Held; n++ {
		i := int(at - 1)
		at = r.held[i].next
		take(i)
	}
	for i := range r.held {
		if r.held[i].state.Load() == arrived {
			take(i)
		}
	}
	r.first, r.last = 0, 0
	r.holds.Store(0)
}

func (l *Lease) setPassing(on bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.passing = on
}

// Free gives a place back to C.
func (l *Lease) Free(place int) { l.rec.held[place].state.Store(free) }

// Take finds a place for a receive that Go posts, so that C can have the receive later. Any
// thread may call Take.
func (l *Lease) Take(r Receive) (place int, ok bool) {
	for range 8 {
		i := l.place.Add(^uint32(0)) % Held // C goes the other way
		if h := &l.rec.held[i]; h.state.CompareAndSwap(free, taken) {
			h.slot, h.source, h.tag = int32(r.Slot), int32(r.Source), int32(r.Tag)
			h.bytes, h.run, h.stride, h.buf = int64(r.Bytes), int64(r.Run), int64(r.Stride), r.Buf
			return int(i), true
		}
	}
	return 0, false
}

// GiveBack gives C, which holds none, the receives at the places that pass returns, in their order.
// Meanwhile later calls of all threads see Holds and wait in TakeOver, and nothing is lent.
func (l *Lease) GiveBack(pass func() (places []int)) {
	l.passes.Lock()
	defer l.passes.Unlock()
	if !l.Holds() && l.claim() {
		defer l.setPassing(false)
		l.hold(pass())
	}
}

// claim begins GiveBack. If C holds receives, claim reports false and does nothing.
func (l *Lease) claim() bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.Holds() {
		return false
	}
	l.passing = true
	l.rec.holds.Store(1)
	return true
}

func (l *Lease) hold(places []int) {
	r, last := l.rec, uint32(0)
	for _, i := range places {
		h, here := &r.held[i], uint32(i+1)
		h.prev, h.next = last, 0
		if last == 0 {
			r.first = here
		} else {
			r.held[last-1].next = here
		}
		last = here
		h.state.Store(posted)
	}
	r.last = last
	r.holds.Store(uint32(len(places)))
}
