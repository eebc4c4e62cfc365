package seg

import (
	"encoding/binary"
	"math"
	"os"
	"sync/atomic"
	"unsafe"

	"gompi/internal/calls"
	"gompi/internal/mem"
)

// Writing a record takes these steps, so that a reader in another process, at any moment, never
// mistakes a torn record for a whole one:
//
//	writer                                  reader
//	1. stamp: an older ticket, not busy     1. load stamp; not busy, not 0
//	   -> ticket, busy                      2. load the fields
//	   by compare-and-swap                  3. load stamp again: same ticket
//	2. store the fields
//	3. stamp = ticket, running
//	4. stamp: running -> done by
//	   compare-and-swap
//
// If a load of step 2 sees a field of a later call, the busy of that call, stored before the field,
// is visible to the still later load of step 3: the reader sees another stamp and tries again. This
// needs stores to become visible in program order, and loads to happen in program order. Every load
// is atomic, which guarantees the order of loads. store guarantees the order of stores: on amd64
// ordinary stores already become visible in order, and the compiler keeps their order around the
// atomic operations of steps 1 and 4; on other processors each is an atomic store, which releases
// all earlier stores.
//
// The compare-and-swap of step 1 gives the ticket, and its record, to one writer: a second writer
// finds a stamp that is not older, and tries the next ticket. A writer that meets a busy record,
// because 64 calls began while the record's writer was in these few instructions, leaves its call
// unrecorded. The compare-and-swap of step 4 fails if 64 later calls have begun and the record is
// another call's: the writer then has nothing to do.

// A phase of a record is the lower two bits of its stamp.
//
//c:const GOMPI_RECORD_
const (
	busy    = 1
	running = 2
	done    = 3
)

// A Recorder is a rank's own view of its state line and flight recorder. A nil *Recorder, as of
// ranks without a segment, does nothing. Methods may be called from any goroutine and never block.
type Recorder struct {
	line *line
	ring *[Recorded]record
	next uint64 // the ticket to try first: never newer than the next free ticket

	names CommNames // nil if the program does not call MPI
}

// A CommName is the name of a communicator in an MPI program, "" if unknown. A persistent
// collective's communicator has the name of the one on which the program made the collective.
type CommName struct {
	Text       string
	Persistent bool
}

// CommNames returns the name of a communicator by id, and must not wait for a lock of the engine.
type CommNames func(comm uint64) CommName

// persistentMark begins the text of a persistent collective's communicator.
const persistentMark = "\x01"

// A Ticket names a call in the recorder, 0 none.
type Ticket uint64

// AnyCall is a Ticket for SetSite that stands for any call the rank waits in, until the next
// SetSite.
const AnyCall = ^Ticket(0) - 1 // no call and no other note has this number

// Join marks the rank as joined from this process. Join returns false if a process has already
// joined in the rank's place.
func (r *Recorder) Join() bool {
	if r == nil {
		return true
	}
	if !r.line.state.CompareAndSwap(uint32(Starting), uint32(Joined)) {
		return false
	}
	r.line.pid.Store(int32(os.Getpid()))
	return true
}

// Late reports whether the agent's process for this rank ended before any process joined. The agent
// will then report that this process came too late.
func (r *Recorder) Late() bool {
	late := State(r.line.state.Load()) == Ended && r.line.pid.Load() == 0
	if late {
		r.line.marks.Or(cameLate)
	}
	return late
}

// TellsOfChild reports whether this process, a child of a rank of the host, is the first child to
// report itself. It is called on the Recorder of local rank 0.
func (r *Recorder) TellsOfChild() bool { return r.line.marks.Or(toldOfChild)&toldOfChild == 0 }

// CallsMPI notes that the program calls functions of MPI: reports use the MPI names.
func (r *Recorder) CallsMPI(names CommNames) {
	if r != nil {
		r.line.marks.Or(callsMPI)
		r.names = names
	}
}

// Leaving notes that the rank begins to leave: if its process then exits with an error, the
// failure counts from now.
func (r *Recorder) Leaving(now int64) {
	if r != nil {
		r.line.left.Store(now)
	}
}

// Leave marks the rank as closed: its process may end with status 0 at any time.
func (r *Recorder) Leave() {
	if r != nil {
		r.line.state.CompareAndSwap(uint32(Joined), uint32(Closed))
	}
}

// A Call is one entry of a flight recorder.
type Call struct {
	Comm  uint64
	Kind  calls.Kind
	Of    calls.Kind // the call that consists of this collective and others, None for itself
	Type  mem.Type
	Op    mem.Op
	Peer  int   // root or peer, -1 for none
	Count int64 // elements
	Bytes int64
	Start int64 // nanoseconds of the monotonic clock, as Now; 0 if not known
	Seq   int64 // a collective's number on its communicator, from 1; a message's tag, -1 for any
	Held  int64 // of a send: the messages that Peer must receive before it takes more, else 0
	Size  int64 // of a collective of mem.Opaque: the bytes of an element
}

// BeginCall records that c begins. BeginCall reads no clock: pass a Start that is already known, or
// call Stamp when c must wait.
func (r *Recorder) BeginCall(c *Call) Ticket {
	seq := uint64(c.Seq)
	if c.Kind == calls.Send {
		seq = uint64(uint32(c.Seq)) | uint64(c.Held)<<32
	}
	return r.begin(c.Comm, what(c.Kind, c.Type, c.Op, c.Peer), uint64(c.Count), uint64(c.Bytes), uint64(c.Start), seq)
}

// BeginCollective is BeginCall for a collective given as two words, in the form of a
// call.Fingerprint. BeginCollective costs about five nanoseconds.
func (r *Recorder) BeginCollective(comm, a, b uint64, bytes int, seq uint64) Ticket {
	return r.begin(comm, a, b, uint64(bytes), 0, seq)
}

// begin takes all arguments in registers: the processor stalls on a load of a whole that was stored
// in parts.
func (r *Recorder) begin(comm, what, count, bytes, start, seq uint64) Ticket {
	if r == nil {
		return 0
	}
	t, rec := r.take()
	if rec == nil {
		return 0
	}
	store(&rec.comm, comm)
	store(&rec.what, what)
	store(&rec.count, count)
	store(&rec.bytes, bytes)
	store(&rec.start, start)
	store(&rec.seq, seq)
	store(&rec.stamp, t<<2|running)
	return Ticket(t)
}

// Lend returns, for C, the address of the records, and the address of the ticket to try first.
func (r *Recorder) Lend() (ring, next unsafe.Pointer) {
	if r == nil {
		return nil, nil
	}
	return unsafe.Pointer(r.ring), unsafe.Pointer(&r.next)
}

// what packs kind, type, operator and peer into one word.
func what(k calls.Kind, t mem.Type, op mem.Op, peer int) uint64 {
	return uint64(k) | uint64(t)<<8 | uint64(op)<<16 | uint64(uint32(peer))<<32
}

// take takes the next ticket and its record, nil if the record is busy.
func (r *Recorder) take() (t uint64, rec *record) {
	for t = atomic.LoadUint64(&r.next); ; {
		rec = &r.ring[t%Recorded]
		old := atomic.LoadUint64(&rec.stamp)
		switch {
		case old>>2 >= t:
			t = old>>2 + 1 // another goroutine has taken this ticket
		case old&3 == busy:
			store(&r.next, t+1)
			return 0, nil
		case atomic.CompareAndSwapUint64(&rec.stamp, old, t<<2|busy):
			store(&r.next, t+1)
			return t, rec
		}
	}
}

// Stamp sets the Start of a call that began without one and must wait. Stamp ignores a call that is
// not in the recorder any more.
func (r *Recorder) Stamp(t Ticket, now int64) {
	if r == nil || t == 0 {
		return
	}
	// One word cannot be torn. If the record becomes another call's between the look and the store,
	// that call began just now too.
	rec := &r.ring[t%Recorded]
	if atomic.LoadUint64(&rec.stamp) == uint64(t)<<2|running {
		atomic.CompareAndSwapUint64(&rec.start, 0, uint64(now))
	}
}

// SetSite notes the place of the call in the program: "train/main.go:55". Of a long site, the end
// is kept. There is room for one call, the one of the last SetSite. Unlike the other methods,
// SetSite must not run twice at once.
func (r *Recorder) SetSite(t Ticket, site string) {
	if r == nil || t == 0 {
		return
	}
	r.line.site.set(uint64(t), site[max(0, len(site)-noteWords*8):])
}

// SetName notes the name of a communicator in which a call of an MPI program waits, under the same
// rules as SetSite.
func (r *Recorder) SetName(comm uint64) {
	if r == nil || r.names == nil || comm == 0 {
		return
	}
	name := r.names(comm)
	if name.Persistent {
		name.Text = persistentMark + name.Text
	}
	r.line.name.set(comm, name.Text)
}

// CannotLeave notes why a rank of an MPI program has not left the job. Of a long reason, the
// beginning is kept. The reason replaces both notes of waiting calls.
func (r *Recorder) CannotLeave(why string) {
	if r != nil {
		r.line.site.set(ofLeaving, why)
		r.line.name.set(ofLeaving, why[min(len(why), noteWords*8):])
	}
}

// ofLeaving is the number of CannotLeave's notes; no call and no communicator has this number.
const ofLeaving = math.MaxUint64

// set stores as much of the text as fits.
func (n *note) set(of uint64, s string) {
	var text [noteWords * 8]byte
	copy(text[:], s)
	n.written.Add(1)
	n.of.Store(of)
	for i := range n.text {
		n.text[i].Store(binary.NativeEndian.Uint64(text[i*8:]))
	}
	n.written.Add(1)
}

// EndCall records that the call is over, if the call is still in the recorder.
func (r *Recorder) EndCall(t Ticket) {
	if r == nil || t == 0 {
		return
	}
	atomic.CompareAndSwapUint64(&r.ring[t%Recorded].stamp, uint64(t)<<2|running, uint64(t)<<2|done)
}
