// Package transport is the interface between gompi's messages and the transports that move
// bytes: memory of this process, TCP, shared memory, UCX.
//
// A Transport moves frames, a Header and an optional payload, between the
// ranks of one world. It knows nothing of communicators, tags, matching or
// element types. Package peers of internal/core is its one caller: it serialises all calls, and
// calls Poll in a loop while it waits, so a Transport needs no goroutine and no
// lock of its own.
//
// It is not a public interface: its types are those of gompi's internal packages, core makes the
// transports that there are, and ranks of one gompi talk to each other alone.
package transport

import (
	"unsafe"

	"gompi/internal/mem"
	"gompi/internal/world"
)

// A Transport moves frames between this rank and its peers.
//
// Frames from one rank to another arrive complete, once, and in the order
// sent. No method blocks. Methods are not safe for concurrent use: the caller
// serialises them. Only Poll and Close call the Sink.
type Transport interface {
	// Name is the transport's short name: "shm", "tcp", "inproc".
	Name() string

	// Reaches reports whether frames can be sent to peer, as far as can be
	// known without trying.
	Reaches(peer world.Rank) bool

	// Carries reports whether payloads in s can be sent and received without
	// staging them in host memory.
	Carries(s mem.Space) bool

	// Send sends a frame: h, whose Len it sets to b.Size(), and b's bytes. h is
	// only read during the call.
	//
	// If Send returns true, b may be reused at once: its bytes are on their
	// way, or copied. If it returns false, b must stay as it is until
	// Sink.Sent(token, err) is called, exactly once, from a later Poll or Close.
	// Small payloads that cannot leave at once are copied, up to an amount per
	// peer that the transport bounds.
	//
	// Several frames to one peer may have one token: the Sents are in the order of the
	// frames, and Forget is for all.
	//
	// A frame that cannot be delivered is reported by Sink.Lost, and by
	// Sink.Sent if its token is still due. Frames to a peer that is lost are
	// dropped.
	Send(peer world.Rank, h *Header, b mem.Buffer, token uint64) bool

	// Poll moves what can be moved now and returns the number of events it
	// handled: frames or windows read, writes finished, connections made. It
	// looks first, and often only, at the peer named, which the caller is
	// waiting for; peer is world.None when there is none.
	Poll(peer world.Rank) int

	// Forget makes the transport release the buffer of a token whose Sent or Filled is
	// still due, and cancels that call. The rest of a payload being received is read and
	// dropped; the rest of a payload being sent is copied. So a caller gets its memory
	// back after an error.
	Forget(peer world.Rank, token uint64)

	// Arm prepares for the caller to sleep. It reports false when there is something to
	// Poll after all. After it returned true, any event for Poll also wakes the caller's
	// Parker, if that is armed too. The next Poll disarms.
	Arm() bool

	// Close sends the queued frames, notifies each connected peer that this rank
	// leaves in good order, and releases everything. It is called repeatedly
	// until it returns true, with sleep between if need be; a call with
	// force ends at once, dropping what is queued. Frames no longer arrive;
	// buffers that are still due get their Sink.Sent.
	Close(force bool) bool
}

// A Sink is what a Transport delivers to: the messages of a rank. Its methods may call Send
// and the methods of a Direct, but neither Poll, Arm nor Close.
type Sink interface {
	// Arrive announces a frame whose header has arrived. If h.Len > 0 it
	// returns where the payload goes: window, non-empty, at most h.Len bytes
	// long, and a token for Filled. An empty window means that the payload is
	// to be read and dropped, without calls to Filled. h is only valid during
	// the call.
	Arrive(peer world.Rank, h *Header) (window mem.Buffer, token uint64)

	// Filled reports that n bytes of payload, the whole of the last window, have
	// been stored. If payload is left, it returns the next window, which may
	// be the same memory again; an empty one means to drop the rest. After the
	// last byte the result is ignored.
	Filled(token uint64) (window mem.Buffer)

	// Sent reports that the buffer of a Send which returned false may be reused;
	// err is not nil if the frame may not have been delivered.
	Sent(token uint64, err error)

	// Lost reports, once, that no frame will arrive from peer any more and none
	// can be sent. err is ErrGone if the peer left in good order, after
	// everything it sent has arrived; otherwise it says what happened.
	Lost(peer world.Rank, err error)
}

// An EagerSink is a Sink that can take a frame which has arrived as a whole in one call,
// instead of Arrive and Filled. It is found by type assertion.
type EagerSink interface {
	// Take takes a frame with its payload, which is valid only during the call. If it
	// reports false, it has done nothing, and Arrive follows.
	Take(peer world.Rank, h *Header, payload []byte) bool
	// Wants reports whether a receive waits for the next frame from peer, so that Poll
	// handles that at once.
	Wants(peer world.Rank) bool
}

// A SilenceSink is a Sink that can find out what has become of a peer that does not answer. It is
// found by type assertion.
type SilenceSink interface {
	// Silent reports that peer has not answered a first connection for some time. The Transport
	// keeps waiting. Other than DeathObserver.Ended nothing may end that.
	Silent(peer world.Rank)
}

// A Parker lets the one driver of a rank sleep until there is something to
// poll. Arm and Disarm are the driver's; Wake may be called from any goroutine
// and never blocks.
type Parker interface {
	// Arm makes C deliver, once, when there is something to poll, already or before
	// Disarm.
	Arm()
	Disarm()
	// C may deliver when there is nothing to poll.
	C() <-chan struct{}
	// Wake makes C deliver, now or at the next receive from it.
	Wake()
}

// Optional interfaces of a Transport, found by type assertion.

// A Progresser is a Transport that needs Poll for reasons that its caller cannot see.
type Progresser interface {
	// Pending reports whether Poll has work for which no Sent is due: copied frames that
	// have yet to leave, connections being made. It costs a few loads.
	Pending() bool
	// Deadline returns in how many nanoseconds, at least 1, Poll wants to be
	// called at the latest, or 0 if time makes no difference. It bounds the
	// caller's sleep.
	Deadline() int64
}

// A DeathObserver is a Transport that notices late or never when the process of a peer ends.
type DeathObserver interface {
	// Ended reports that the process of a rank has ended, as the launcher reports: err is ErrGone
	// if it had left in good order, else ErrCut. The next Poll delivers what has arrived from the
	// rank, and then reports it as lost. It may be called during Poll.
	Ended(peer world.Rank, err error)
}

// A Detacher is a Transport that shares memory with its peers.
type Detacher interface {
	// Detach gives up a rank whose process has ended: what is under way with it ends, and the
	// memory that only the two have used is freed. The Transport does not touch memory of the rank
	// again.
	Detach(peer world.Rank)
}

// An InlineSender is a Transport that can send a small frame without a token, and receive
// one without the Sink.
type InlineSender interface {
	// SendNow is Send for a frame that can leave at once and as a whole. If it reports
	// false, it has done nothing.
	SendNow(peer world.Rank, h *Header, b mem.Buffer) bool
	// RecvNow takes the next frame from peer if it has arrived as a whole, fits into b,
	// and has want's Kind, Flags, Comm and Tag; a negative Tag is any. Then it sets want
	// to the frame's header, stores the payload in b and reports that it has. Else it does
	// nothing, and reports whether another frame is there, so that to look again is in vain.
	// It costs a load from memory.
	RecvNow(peer world.Rank, want *Header, b mem.Buffer) (got, other bool)
}

// Ends are the integers of a Transport that say how far its rings to and from a peer are read and
// written. They stay where they are.
type Ends struct {
	Local          int            // the number of the peer
	Writer, Reader unsafe.Pointer // of package shm: writer and reader
	Behind         unsafe.Pointer // bool: a record was there at the last look
	Parked         unsafe.Pointer // uint32 in shared memory: not 0 while the peer sleeps
}

// A Lender is a Transport whose rings others may write and read in its place, as long as the caller
// does not call it.
type Lender interface {
	// Ends returns the ends of the rings of a peer. ok is false if there are none.
	Ends(peer world.Rank) (e Ends, ok bool)
	// MayLend reports whether a peer's rings hold nothing that only the Transport can handle.
	MayLend(peer world.Rank) bool
	// Lend prepares for others to use the rings. It returns how long their messages may be, 0 if
	// they may not use them now.
	Lend() (most int)
}

// A Direct Transport can write to some memory of its peers, past their frames.
type Direct interface {
	// Place returns the place of b, to which a peer can Put, and from which it can Get if the
	// Transport is a Getter; 0 if there is none. It costs a few comparisons.
	Place(peer world.Rank, b mem.Buffer) (place uint64)
	// Recall makes all places returned so far invalid: a peer that still copies from or to
	// one learns that its copy is void. A peer that writes may continue for some time.
	Recall()
	// Put copies src to a place that the peer has sent. It does not begin during the call.
	// Sink.Sent(token, err) is called from a later Poll or Close, unless Forget is before; err
	// is ErrRecalled if the peer has recalled its places meanwhile, so that what was copied is
	// void, or there is no such place.
	Put(peer world.Rank, place uint64, src mem.Buffer, token uint64)
}

// A Getter is a Direct Transport that can read there, too.
type Getter interface {
	Direct
	// Source returns a place of b, wherever that lies, which peer can only Get from; 0 if there is
	// none. It costs a few comparisons.
	Source(peer world.Rank, b mem.Buffer) (place uint64)
	// Maps reports whether this rank maps the memory at a place that a peer has sent, so that Get
	// copies it at once. A Source may take longer than frames.
	Maps(place uint64) bool
	// Get copies dst.Size() bytes from a place that the peer has sent to dst, as Put does. It may
	// end with ErrRecalled although the place holds: then the peer's memory cannot be read. helped
	// lets it ask the peer to copy a part.
	Get(peer world.Rank, place uint64, dst mem.Buffer, token uint64, helped bool)
}

// A OneSided Transport reads and writes registered memory of peers whether or not these poll: their
// devices do it.
type OneSided interface {
	Registrar
	// Key returns what a peer needs to access b, which must be registered; nil if no peer can.
	Key(b mem.Buffer) []byte
	// Remote returns the memory of a peer that has a key which it has sent. It returns nil if
	// nothing connects the two yet, or no device. It costs a few loads then.
	Remote(peer world.Rank, key []byte) Remote
}

// A Remote is memory of a peer. Places in it are the peer's addresses: they are not checked. Writes
// and reads are in no order.
type Remote interface {
	// Write begins to store src, which may be changed at once. It returns how many of its bytes it
	// has taken, 0 if too much is under way or the peer is lost.
	Write(at uintptr, src []byte) (n int)
	// Read begins to store in dst what is there, as Write does. If n is not 0 Sink.Sent(token, err)
	// follows from a later Poll or Close, unless Forget is before.
	Read(at uintptr, dst []byte, token uint64) (n int)
	// Flush has Sink.Sent(token, err) called, as Read does, when all that this rank has written to
	// the peer is stored there, so that whoever learns of it loads it. It reports false, and does
	// nothing, if the peer is lost.
	Flush(token uint64) bool
	// Close frees what the Remote holds here. Nothing may be under way.
	Close()
}

// A Registrar is a Direct Transport that must know the memory that has places.
type Registrar interface {
	// Register makes b, which must not lie in Go's heap, known until Deregister. It fails if
	// there is no more such memory, or its devices refuse it.
	Register(b mem.Buffer) error
	// Deregister undoes Register. It reports false if b may still be read or written. Then b
	// must be kept as it is until the process ends.
	Deregister(b mem.Buffer) bool
}
