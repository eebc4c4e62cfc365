package seg

import (
	"encoding/binary"
	"os"
	"sync/atomic"

	"gompi/internal/mem"
)

// How a record is written, so that a reader in another process, which may look
// at any moment, never takes a torn record for a whole one:
//
//	writer                                  reader
//	1. stamp: anything but busy -> busy     1. load stamp; not busy, not 0
//	   by compare-and-swap                  2. load the fields
//	2. store the fields                     3. load stamp again: same ticket
//	3. stamp = ticket, running
//	4. stamp: running -> done by
//	   compare-and-swap
//
// If a load of step 2 sees a field of a later call, then the busy of that call,
// stored before the field, is visible to the load of step 3, which is later
// still: it sees another stamp and the reader tries again. That needs stores to
// become visible in program order, and loads to happen in program order. Every
// load is an atomic one, which guarantees the latter. store is what guarantees
// the former: on amd64 ordinary stores already become visible in order, and the
// compiler keeps them in order around the atomic operations of steps 1 and 4; on
// other processors each is an atomic store, which releases all that came before.
//
// The compare-and-swap of step 1 gives the record to one writer. A second one
// that meets a busy record, because 64 calls began while the first was in these
// few instructions, leaves its call unrecorded. The one of step 4 fails when 64
// later calls have gone by and the record is another's: nothing is to be done.

// A phase of a record is the lower two bits of its stamp.
const (
	busy    = 1
	running = 2
	done    = 3
)

// A Rank is a rank's own view of its state line and flight recorder. A nil
// *Rank is valid and does nothing: ranks without a segment use that. Methods
// may be called from any goroutine and never block.
type Rank struct {
	line    *line
	ring    *[Recorded]record
	tickets atomic.Uint64
}

// A Ticket names a call in the recorder, 0 none.
type Ticket uint64

// Join marks the rank as joined from this process. It reports false when a
// process joined in its place before.
func (r *Rank) Join() bool {
	if r == nil {
		return true
	}
	if !r.line.state.CompareAndSwap(uint32(Starting), uint32(Joined)) {
		return false
	}
	r.line.pid.Store(int32(os.Getpid()))
	return true
}

// Leaving notes that the rank begins to leave: if its process fails after all,
// it failed no later than now.
func (r *Rank) Leaving(now int64) {
	if r != nil {
		r.line.left.Store(now)
	}
}

// Leave marks the rank as closed: its process may end with any status 0.
func (r *Rank) Leave() {
	if r != nil {
		r.line.state.CompareAndSwap(uint32(Joined), uint32(Closed))
	}
}

// A Call is one entry of a flight recorder.
type Call struct {
	Comm  uint64
	Kind  Kind
	Type  mem.Type
	Op    mem.Op
	Peer  int   // root or peer, -1 for none
	Count int64 // elements
	Bytes int64
	Start int64 // nanoseconds of the monotonic clock, as Now; 0 if not known
	Seq   int64 // a collective's number on its communicator, from 1; a message's tag, -1 for any
}

// BeginCall records that c begins. It costs about ten nanoseconds and reads no
// clock: pass a Start that is known already, or call Stamp when c must wait.
func (r *Rank) BeginCall(c *Call) Ticket {
	if r == nil {
		return 0
	}
	t := r.tickets.Add(1)
	rec := &r.ring[t%Recorded]
	old := atomic.LoadUint64(&rec.stamp)
	if old&3 == busy || !atomic.CompareAndSwapUint64(&rec.stamp, old, busy) {
		return 0
	}
	store(&rec.comm, c.Comm)
	store(&rec.what, uint64(c.Kind)|uint64(c.Type)<<8|uint64(c.Op)<<16|uint64(uint32(c.Peer))<<32)
	store(&rec.count, uint64(c.Count))
	store(&rec.bytes, uint64(c.Bytes))
	store(&rec.start, uint64(c.Start))
	store(&rec.seq, uint64(c.Seq))
	store(&rec.stamp, t<<2|running)
	return Ticket(t)
}

// Stamp sets the Start of a call that began without one, when it turns out that
// it must wait. A call that is no longer in the recorder is left alone.
func (r *Rank) Stamp(t Ticket, now int64) {
	if r == nil || t == 0 {
		return
	}
	// One word cannot be torn. Should the record become another call's between
	// the look and the store, then that call began just now too.
	rec := &r.ring[t%Recorded]
	if atomic.LoadUint64(&rec.stamp) == uint64(t)<<2|running {
		atomic.CompareAndSwapUint64(&rec.start, 0, uint64(now))
	}
}

// SetSite notes where in the program the call stands: "train/main.go:55", of
// which the end is kept if it is long. There is room for one call, that of the
// last SetSite. Unlike the other methods it must not run twice at once.
func (r *Rank) SetSite(t Ticket, site string) {
	if r == nil || t == 0 {
		return
	}
	var text [siteWords * 8]byte
	copy(text[:], site[max(0, len(site)-len(text)):])
	r.line.sited.Add(1)
	r.line.call.Store(uint64(t))
	for i := range r.line.site {
		r.line.site[i].Store(binary.NativeEndian.Uint64(text[i*8:]))
	}
	r.line.sited.Add(1)
}

// EndCall records that the call is over, if it is still in the recorder.
func (r *Rank) EndCall(t Ticket) {
	if r == nil || t == 0 {
		return
	}
	atomic.CompareAndSwapUint64(&r.ring[t%Recorded].stamp, uint64(t)<<2|running, uint64(t)<<2|done)
}
