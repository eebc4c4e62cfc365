// Package transport is the interface between gompi's messages and the transports that move
// bytes: memory of this process, TCP, shared memory, UCX.
//
// A Transport moves frames, a Header and an optional payload, between the ranks of one world, and
// knows nothing of communicators, tags, matching or element types. Its only caller is package peers
// of internal/core, which serialises all calls, and calls Poll in a loop while it waits. So a
// Transport needs no goroutine and no lock of its own.
//
// The interface is not public: its types are gompi's internal ones, core creates all transports,
// and only ranks of the same gompi talk to each other.
package transport

import (
	"unsafe"

	"gompi/internal/mem"
	"gompi/internal/world"
)

// A Transport moves frames between this rank and its peers.
//
// Frames from one rank to another arrive complete, once, and in order. No method blocks. Methods
// are not safe for concurrent use: the caller serialises them. Only Poll and Close call the Sink.
type Transport interface {
	// Name is the transport's short name: "shm", "tcp", "inproc".
	Name() string

	// Reaches reports whether frames can be sent to peer, as far as is known without an attempt.
	Reaches(peer world.Rank) bool

	// Carries reports whether payloads in s can be sent and received without staging in host
	// memory.
	Carries(s mem.Space) bool

	// Send sets h.Len to b.Size() and sends a frame: h and b's bytes. h is only read during the
	// call.
	//
	// If Send returns true, b may be reused at once: its bytes have left or are copied. If Send
	// returns false, b must stay unchanged until Sink.Sent(token, err) is called, exactly once,
	// from a later Poll or Close. Small payloads that cannot leave at once are copied, up to an
	// amount per peer that the transport bounds.
	//
	// Several frames to one peer may share a token: then the Sents are in the order of the frames,
	// and Forget applies to all.
	//
	// A frame that cannot be delivered is reported by Sink.Lost, and by Sink.Sent if its token is
	// still due. Frames to a lost peer are dropped.
	Send(peer world.Rank, h *Header, b mem.Buffer, token uint64) bool

	// Poll moves as much as possible without waiting, and returns the number of events: frames or
	// windows read, writes finished, connections made. Poll looks first, and often only, at the
	// named peer, for which the caller waits; peer is world.None if the caller waits for none.
	Poll(peer world.Rank) int

	// Forget makes the transport release the buffer of a token whose Sent or Filled is still due,
	// and cancels that call. The rest of a payload being received is read and dropped; the rest of
	// a payload being sent is copied. So a caller gets its memory back after an error.
	Forget(peer world.Rank, token uint64)

	// Capabilities returns the optional parts of the Transport, the same at each call.
	Capabilities() Capabilities

	// Arm prepares for the caller to sleep. Arm returns false if Poll has work. After true, any
	// event for Poll also wakes the caller's Parker, if that is armed, too. The next Poll disarms.
	Arm() bool

	// Close sends the queued frames, notifies each connected peer that this rank leaves in good
	// order, and releases everything. Close is called repeatedly until it returns true, with sleep
	// between. A call with force ends at once and drops queued frames. Frames no longer arrive;
	// buffers that are still due get their Sink.Sent.
	Close(force bool) bool
}

// A Sink, the messages of a rank, receives a Transport's frames. Its methods may call Send and the
// methods of a Direct, but neither Poll, Arm nor Close.
type Sink interface {
	// Arrive announces a frame whose header has arrived. If h.Len > 0 Arrive returns the memory for
	// the payload: window, non-empty, at most h.Len bytes long, and a token for Filled. An empty
	// window means to read and drop the payload, without calls to Filled. h is only valid during
	// the call.
	Arrive(peer world.Rank, h *Header) (window mem.Buffer, token uint64)

	// Filled reports that the last window has been filled with payload. If payload is left, Filled
	// returns the next window, which may be the same memory; an empty one means to drop the rest.
	// After the last byte the result is ignored.
	Filled(token uint64) (window mem.Buffer)

	// Sent reports that the buffer of a Send which returned false may be reused. err is not nil if
	// the frame may not have been delivered.
	Sent(token uint64, err error)

	// Lost reports, once, that no more frames arrive from peer or can be sent there. err is ErrGone
	// if the peer left in good order, after all its frames have arrived; otherwise err is the
	// cause.
	Lost(peer world.Rank, err error)
}

// An EagerSink is a Sink that can take a completely arrived frame in one call, instead of Arrive
// and Filled. A type assertion finds EagerSinks.
type EagerSink interface {
	// Take takes a frame with its payload, which is valid only during the call. Take returning
	// false has done nothing, and Arrive follows.
	Take(peer world.Rank, h *Header, payload []byte) bool
	// Wants reports whether a receive waits for the next frame from peer, so that Poll handles this
	// frame at once.
	Wants(peer world.Rank) bool
}

// A SilenceSink is a Sink that can investigate a peer that does not answer. A type assertion finds
// SilenceSinks.
type SilenceSink interface {
	// Silent reports that peer has not answered a first connection for some time. The Transport
	// keeps waiting. Possibly only DeathObserver.Ended ends that.
	Silent(peer world.Rank)
}

// A Parker lets the one driver of a rank sleep until Poll has work. Arm and Disarm are the
// driver's; Wake may be called from any goroutine and never blocks.
type Parker interface {
	// Arm makes C deliver, once, when Poll has work, at once or before Disarm.
	Arm()
	Disarm()
	// C may also deliver without work.
	C() <-chan struct{}
	// Wake makes C deliver, now or at the next receive from C.
	Wake()
}

// Capabilities are the optional parts of a Transport, each nil where the Transport lacks the part.
type Capabilities struct {
	Progresser    Progresser
	DeathObserver DeathObserver
	Detacher      Detacher
	Inline        InlineSender
	Lender        Lender
	Direct        Direct
	Getter        Getter    // also as Direct
	Registrar     Registrar // also as Direct
	OneSided      OneSided  // also as Registrar
}

// A Progresser is a Transport that needs Poll for reasons that its caller cannot see.
type Progresser interface {
	// Pending reports whether Poll has work for which no Sent is due: copied frames that have yet
	// to leave, connections being made. Pending costs a few loads.
	Pending() bool
	// Deadline returns the time, in nanoseconds, at least 1, within which Poll wants to be called,
	// or 0 if time makes no difference. The caller sleeps no longer.
	Deadline() int64
}

// A DeathObserver is a Transport that notices the end of a peer's process late or never.
type DeathObserver interface {
	// Ended reports that the process of a rank has ended, according to the launcher: err is ErrGone
	// if the rank had left in good order, else ErrCut. The next Poll delivers the rank's arrived
	// frames, and then reports it as lost. Ended may be called during Poll.
	Ended(peer world.Rank, err error)
}

// A Detacher is a Transport that shares memory with its peers.
type Detacher interface {
	// Detach gives up a rank whose process has ended: its transfers end, and the memory that only
	// the two have used is freed. The Transport does not touch memory of the rank again.
	Detach(peer world.Rank)
}

// An InlineSender is a Transport that can send a small frame without a token, and receive one
// without the Sink.
type InlineSender interface {
	// SendNow is Send for a frame that can leave whole and at once. SendNow returning false has
	// done nothing.
	SendNow(peer world.Rank, h *Header, b mem.Buffer) bool
	// RecvNow looks for the next frame from peer, and takes the frame if its payload fits into b
	// and it has want's Kind, Flags, Comm and Tag; a negative Tag is any. Then want becomes the
	// frame's header. RecvNow waits some microseconds at most for the rest of a long payload, else
	// it costs a load from memory.
	RecvNow(peer world.Rank, want *Header, b mem.Buffer) Look
	// Continue names the frame that RecvNow has Begun: Sink.Filled(token) reports its last byte.
	Continue(peer world.Rank, token uint64)
}

// A Look is the outcome of RecvNow.
type Look uint8

const (
	Nothing Look = iota // no frame has arrived
	Other               // a different frame is next, so that another look is in vain
	Begun               // the frame is longer than ShortFrame, and the rest of it has yet to arrive in b: Continue follows
	Whole               // the payload is in b
)

// ShortFrame is the bytes of payload up to which RecvNow takes a frame whole or not at all.
const ShortFrame = 8 << 10

// Ends are the addresses of a Transport's positions in its rings to and from a peer. The addresses
// are constant.
type Ends struct {
	//c:type struct gompi_writer *
	Writer unsafe.Pointer
	//c:type struct gompi_reader *
	Reader unsafe.Pointer
	//c:type bool *
	Behind unsafe.Pointer // a record was there at the last look
	//c:type uint32_t *
	Parked unsafe.Pointer // in shared memory: not 0 while the peer sleeps
}

// A Lender is a Transport whose rings another component may write and read in its place, as long as
// the caller does not call the Transport.
type Lender interface {
	// Ends returns the ends of the rings of a peer, if any, and the peer's local rank.
	Ends(peer world.Rank) (e Ends, local world.LocalRank, ok bool)
	// MayLend reports whether a peer's rings hold nothing that only the Transport can handle.
	MayLend(peer world.Rank) bool
	// Lend prepares the rings for the borrower. Lend returns the borrower's longest message, or 0
	// if the rings cannot be lent.
	Lend() (most int)
}

// A Direct Transport can write to some memory of its peers, without frames.
type Direct interface {
	// Place returns the place of b, to which a peer can Put, and from which it can Get if the
	// Transport is a Getter; 0 if there is none. Place costs a few comparisons.
	Place(peer world.Rank, b mem.Buffer) (place uint64)
	// Recall makes all previous places invalid: a peer with a copy under way learns that the copy
	// is void. A peer that writes may continue for some time.
	Recall()
	// Put copies src to a place that the peer has sent. The copy does not begin during the call.
	// Sink.Sent(token, err) is called from a later Poll or Close, unless Forget precedes. err is
	// ErrRecalled if the peer has recalled its places meanwhile, which makes the copy void, or if
	// the place does not exist.
	Put(peer world.Rank, place uint64, src mem.Buffer, token uint64)
}

// A Getter is a Direct Transport that can also read from places.
type Getter interface {
	Direct
	// Source returns a place of b, in any memory, from which peer can only Get; 0 if there is none.
	// Source costs a few comparisons.
	Source(peer world.Rank, b mem.Buffer) (place uint64)
	// Maps reports whether this rank maps the memory at a place that a peer has sent, so that Get
	// copies at once. A Source may take longer than frames.
	Maps(place uint64) bool
	// Get copies dst.Size() bytes from a place that the peer has sent to dst, as Put does. Get may
	// end with ErrRecalled although the place is valid: then the peer's memory cannot be read. If
	// helped is set, Get may ask the peer to copy a part.
	Get(peer world.Rank, place uint64, dst mem.Buffer, token uint64, helped bool)
}

// A OneSided Transport's devices read and write registered memory of peers whether or not the peers
// poll.
type OneSided interface {
	Registrar
	// Key returns the key by which a peer accesses b, which must be registered; nil if no peer can.
	Key(b mem.Buffer) []byte
	// Remote returns the memory of a peer, by a key that the peer has sent. Remote returns nil, at
	// the cost of a few loads, if the two are not connected yet, or not by a device.
	Remote(peer world.Rank, key []byte) Remote
}

// A Remote is memory of a peer. Places in it are the peer's addresses: they are not checked. Writes
// and reads are unordered.
type Remote interface {
	// Write begins to store src, which may be changed at once. Write returns the number of accepted
	// bytes, 0 if too much is under way or the peer is lost.
	Write(at uintptr, src []byte) (n int)
	// Read begins to copy from the place to dst, like Write. If n is not 0, Sink.Sent(token, err)
	// follows from a later Poll or Close, unless Forget precedes.
	Read(at uintptr, dst []byte, token uint64) (n int)
	// Flush makes Sink.Sent(token, err) follow, as for Read, when all of this rank's writes to the
	// peer are stored there, so that any rank that learns of this loads them. Flush returns false,
	// and does nothing, if the peer is lost.
	Flush(token uint64) bool
	// Close frees the Remote's resources here. Nothing may be under way.
	Close()
}

// A Registrar is a Direct Transport that must know the memory that has places.
type Registrar interface {
	// Register makes b, which must not lie in Go's heap, known until Deregister. Register fails if
	// the table of registrations is full, or if the devices refuse.
	Register(b mem.Buffer) error
	// Deregister undoes Register. Deregister returns false if b may still be read or written. Then
	// b must be kept unchanged until the process ends.
	Deregister(b mem.Buffer) bool
}
