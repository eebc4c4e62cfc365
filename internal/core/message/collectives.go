package message

import (
	"gompi/internal/core/payload"
	"gompi/internal/core/peers"
	"gompi/internal/mem"
	"gompi/internal/seg"
	"gompi/internal/world"
)

// This file is the interface between the collectives of a Channel and its messages: package round
// gives the messages of collectives their order, numbers and credit; this package moves them. The
// methods of Channels below, except TryProgress, are called with the lock held.

// Collectives are the collectives of a Channel. All methods are called with the lock held.
type Collectives interface {
	// Frame handles a frame of a collective. r, if not nil, receives its payload. kept reports that
	// m is kept, with its payload.
	Frame(m *Kept) (r *Request, kept bool)
	// Over reports that a Request of theirs has ended.
	Over(err error)
	// Missing reports that a collective's Request waits for a member that cannot be reached.
	Missing(p *peers.Peer, err error)
	// Dismiss reports that a member has left.
	Dismiss(p *peers.Peer)
	// Fail reports that the Channel is broken. Requests of collectives end, except if their payload
	// has begun to move.
	Fail(err error)
	// Awaited appends the members for which they wait to to.
	Awaited(to []int) []int
	// Unanswered yields the members that have announced a call which this rank has not made.
	Unanswered(yield func(member int) bool)
}

// CollectiveEager is the largest message of a collective that is sent at once: larger than
// DefaultEager, as collectives' receives are nearly always posted, and payload is read into place.
const CollectiveEager = 256 << 10

// Collectives returns the Channel's result of Config.Collectives.
func (ch *Channel) Collectives() Collectives { return ch.collectives }

// Flight returns the flight recorder of the Channel's collectives, nil if they are not recorded.
func (ch *Channel) Flight() *seg.Recorder {
	if ch.hidden {
		return nil
	}
	return ch.Engine.flight
}

// Hide excludes the Channel's calls from the flight recorder. Hide is called before the first call.
func (ch *Channel) Hide() { ch.hidden = true }

// Peer returns a member.
func (ch *Channel) Peer(member int) *peers.Peer { return ch.Engine.Peers.Peer(ch.World(member)) }

// TryProgress polls once for a goroutine that waits for a rank, or for any if rank is None, unless
// another goroutine polls or holds the lock. The result is why the Channel is broken, or nil.
func (ch *Channel) TryProgress(rank world.Rank) error {
	e := ch.Engine
	if e.Progress.TryLock() {
		e.pollOnce(rank)
		e.Progress.Exit()
	}
	return ch.Err()
}

// ProcessLost polls once and reports whether the process of a member is lost.
func (ch *Channel) ProcessLost(member int) bool {
	rank := ch.World(member)
	ch.Engine.pollOnce(rank)
	return ch.Engine.Live.Lost(rank) != nil
}

// Request begins a send of b to p, or a receive from p, as a Request of the Channel's
// Collectives, which has not begun to move. FreeRequest takes the Request back after its end.
func (ch *Channel) Request(p *peers.Peer, b mem.Buffer) *Request {
	r := ch.Engine.newRequest()
	r.begin(ch, payload.Queued, b, p.Rank, 0)
	r.Peer, r.Size, r.collective = p, b.Size(), true
	return r
}

// Take completes r by a kept message, perhaps after the rest of the message has arrived.
func (ch *Channel) Take(r *Request, m *Kept) {
	if m.ready {
		ch.consume(r, m)
		return
	}
	r.Stage, m.taken = payload.Filling, r
}
