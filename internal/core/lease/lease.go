// Package lease is what lets C send and receive short messages, do short collectives (team.go), and
// access windows (window.go), without entering Go.
//
// An MPI call that enters Go costs 50 ns, and 1 to 37 us when the program has computed for a while.
// So while nothing is under way that only Go can serve, Go lends C what a short message needs: the
// cursors of the shared-memory rings to some peers, the credit there, and the numbers of some
// communicators. C finishes an operation whole or does not begin it, and calls Go instead. It makes
// no error and never sleeps.
//
// C posts receives, too, and matches what comes with them as Go does: a message goes to the first
// posted that wants it. Go does not know of these, so that whoever enters it first has Go take them
// over, in their order, before anything else is posted (TakeOver). While Go has receives posted on
// a communicator or keeps messages of it, it is not lent: there is one queue of each, Go's or C's.
//
// # Who owns the state
//
// All of it is guarded by the lock of the rank's progress engine. Whoever takes that lock recalls
// the lease first. The word of the Record says who has it:
//
//	none  Go
//	lent  C may take it: compare-and-swap to busy
//	busy  a thread is inside C; it stores lent when it has finished one operation
//
// Recall swaps lent for none. While the word is busy it asks for the lease, by wanted, and looks
// again: an operation takes less than a microsecond, and a receive that waits looks at wanted each
// turn. C does not take a lease that is wanted. So the wait of Recall ends as soon as the thread
// inside C has run.
//
// C takes the lease with an acquiring and gives it back with a releasing operation, and so does Go:
// what one has stored the other sees. The rest of the order is that of package shm: a record's word
// is stored behind the record, and then the writer looks whether the reader sleeps, both
// sequentially consistent.
//
// The cursors lie where Go has them, in integers that C reads and stores through pinned pointers:
// nothing is copied, and a recall costs one compare-and-swap. The Record lies in memory that a
// forked child finds zeroed: its word is none, so that a child never writes to its parent's rings.
package lease

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
)

// Limits of what can be lent: communicators by slot, peers by local rank, and datatypes by number.
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

// operations is how many operations C makes before it enters Go, which looks what else there is to
// do.
const operations = 4096

// A Record is what Go and C share.
//
//c:struct gompi_lease
type Record struct {
	word   atomic.Uint32
	wanted atomic.Uint32
	stamp  uint32 // of this lease: what carries it is lent
	left   uint32 // operations until C has to enter Go

	Spin   uint32 // how often a receive looks for its message
	Most   uint32 // bytes of the longest message that C sends
	Credit int64  // cost of all messages to one peer for which it has returned no credit
	Type   uint32 // of all messages, as their headers have it
	Mix    uint32 // C leaves operations to Go at random

	missed     atomic.Uint32 // C has entered Go for want of a lease
	missedComm int32         // the communicator's number
	missedRank int32         // and the peer's in it, negative if it is any
	vain       uint32        // looks since the last success: C's
	holds      atomic.Uint32 // receives that C holds
	first      uint32        // of those posted, as next
	last       uint32        // and the last
	place      uint32        // where C looks for a free one
	missedTeam atomic.Uint32 // 1 more than the number of a communicator whose Team C has missed
	_          [52]byte

	channels [Channels]channel
	peers    [Peers]peer
	routes   [Channels][Peers]uint16 // by rank: 1 more than the local rank, 0 if it is not known
	sizes    [Sizes]uint8            // of elements that are one run of bytes, 0 of others
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

// A held is a receive that C holds: posted, and Go does not know of it.
//
//c:struct gompi_held
type held struct {
	state       atomic.Uint32
	slot        int32
	source, tag int32 // what is wanted, then what has come
	bytes       int64 // of the buffer, then of the message
	run, stride int64 // the buffer is runs of as many bytes, stride apart
	//c:type void *
	buf        uintptr
	next, prev uint32 // of those posted, in order: 1 more than the place, 0 at the ends
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

// A peer is another rank of this host.
//
//c:struct gompi_peer
type peer struct {
	Ends
	stamp uint32
	used  uint32
	local int32
	_     int32
}

// Ends are what is lent of a peer: pointers to integers of Go's that stay where they are.
type Ends struct {
	//c:type struct gompi_writer *
	Writer unsafe.Pointer // of its rings
	//c:type struct gompi_reader *
	Reader unsafe.Pointer
	//c:type bool *
	Behind unsafe.Pointer // of the reader's
	//c:type uint32_t *
	Parked unsafe.Pointer // not 0 while it sleeps
	//c:type struct gompi_credit *
	Credit unsafe.Pointer // what was spent, and what is owed
	//c:type struct gompi_carried *
	Carried unsafe.Pointer // messages and bytes
}

// A Lease lends what is in a Record.
type Lease struct {
	rec    *Record
	place  atomic.Uint32 // where Take looks
	lapsed atomic.Bool   // the last lease was taken back, and C had used it
	pinner runtime.Pinner
}

// Record returns what is shared with C.
func (l *Lease) Record() *Record { return l.rec }

// looks is how often takeBack looks between two yields, and yields how many of these it makes before
// it sleeps. The thread inside C has mostly lost this very processor to this one,
// which then has to give it back: to have other goroutines run instead took a millisecond.
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

// takeBack takes back what a word guards once no thread is inside C. It reports false if C has it no
// more: a signal's handler has interrupted the thread inside for good.
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

// Missed reports, once, that C has no lease and needs one, for an operation with a rank of a
// communicator: it has entered Go for that or, when it tests, for that of the last one; or Go has
// taken a lease back that C has used, as each collective does, and C is to find another when it
// needs it: to enter Go takes long after the program has computed.
func (l *Lease) Missed() (comm, rank int, tests, ok bool) {
	r := l.rec
	if r.missed.Load() == 0 && !l.lapsed.Load() { // which is mostly so, and costs no more than two loads
		return 0, 0, false, false
	}
	l.lapsed.Store(false)
	return int(r.missedComm), int(r.missedRank), r.missed.Swap(0) == missedTest, true
}

// missedTest is what missed is if a test has missed the lease, where 1 is any other call.
//
//c:const GOMPI_LEASE_
const missedTest = 2

// Begin begins to prepare a lease. It reports whether the last one has ended because C had made all
// operations that it may.
func (l *Lease) Begin() (expired bool) {
	l.rec.stamp++
	expired = l.rec.left == 0
	l.rec.left = operations
	return expired
}

// Lend lends what has been prepared.
func (l *Lease) Lend() { l.rec.word.Store(lent) }

// Channel makes slot stand for a communicator, of which nothing is lent yet. It reports whether it
// has not stood for it so far.
func (l *Lease) Channel(slot int, context uint64, size int) (fresh bool) {
	c := &l.rec.channels[slot]
	if c.size == int32(size) && c.context == context {
		return false
	}
	*c = channel{size: int32(size), context: context}
	clear(l.rec.routes[slot][:size])
	return true
}

// Size sets the size of a datatype whose elements are one run of bytes, none of them between two.
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

// Derived says what an element of the program's datatype of a number is, the zero Shape if that is
// none, or the datatype is no more.
func (l *Lease) Derived(datatype int, s Shape) {
	if datatype < Sizes {
		l.rec.derived[datatype] = s
	}
}

// Route notes the local rank of a member.
func (l *Lease) Route(slot, member, local int) { l.rec.routes[slot][member] = uint16(local + 1) }

// Peer makes known where the ends of a local rank are.
func (l *Lease) Peer(local int, e Ends) {
	p := &l.rec.peers[local]
	for _, x := range []unsafe.Pointer{e.Writer, e.Credit, e.Carried} { // Reader and Behind lie beside Writer
		l.pinner.Pin(x)
	}
	p.Ends, p.local = e, int32(local)
}

// LendPeer makes a peer part of the lease.
func (l *Lease) LendPeer(local int) { l.rec.peers[local].stamp = l.rec.stamp }

// LendChannel makes a communicator part of the lease, when the peers are. self is the rank in it.
func (l *Lease) LendChannel(slot, self int) {
	c := &l.rec.channels[slot]
	c.stamp, c.whole = l.rec.stamp, 1
	for member, at := range l.rec.routes[slot][:c.size] {
		if member != self && (at == 0 || l.rec.peers[at-1].stamp != l.rec.stamp) {
			c.whole = 0
		}
	}
}

// A Receive is one that C has held. Before its message has Arrived, Source, Tag and Bytes are what
// is wanted, then what has come. At Buf there are runs of Run bytes, Stride bytes apart.
type Receive struct {
	Place       int
	Slot        int
	Source, Tag int
	Bytes       int
	Run, Stride int
	Buf         uintptr
	Arrived     bool
}

// Holds reports whether C holds receives. It takes no lock.
func (l *Lease) Holds() bool { return l.rec.holds.Load() != 0 }

// TakeOver calls f for the receives that C holds: those posted in order, then those whose message
// has arrived. They are Go's then, until Free, and Holds reports true until all are. The lease is
// recalled and is not lent meanwhile.
func (l *Lease) TakeOver(f func(Receive)) {
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

// Free gives a place back to C.
func (l *Lease) Free(place int) { l.rec.held[place].state.Store(free) }

// Take finds a place for a receive that Go posts, so that C can have it later. Any thread may call
// it.
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

// Claim makes Holds report true before Hold, and Revoke false if there is nothing to Hold after
// all.
func (l *Lease) Claim()  { l.rec.holds.Store(1) }
func (l *Lease) Revoke() { l.rec.holds.Store(0) }

// Hold gives receives of Go to C, of which it holds none, in the order in which they were posted. C
// has no lease meanwhile.
func (l *Lease) Hold(places []int) {
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

// ChannelUsed and PeerUsed report whether C has used it since the last call.
func (l *Lease) ChannelUsed(slot int) bool { return took(&l.rec.channels[slot].used) }
func (l *Lease) PeerUsed(local int) bool   { return took(&l.rec.peers[local].used) }

// Lent reports what C finds lent of the communicator that it calls slot: some of it, and whether
// all other members are peers that are lent, too.
func (l *Lease) Lent(slot int) (some, whole bool) {
	c := &l.rec.channels[slot]
	some = l.rec.word.Load() == lent && c.stamp == l.rec.stamp
	return some, some && c.whole == 1
}

func took(used *uint32) bool {
	was := *used != 0
	*used = 0
	return was
}
