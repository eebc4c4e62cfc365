package engine

import (
	"context"

	"gompi/internal/mem"
	"gompi/transport"
)

// This file checks, before a Channel is closed, that its members have made the same calls.
// Some collectives end on a rank that has received nothing: the root of a Bcast sends and
// returns. If that was its last call, no later call shows that others passed another root. So
// a rank that closes a Channel sends goodbyes, in the pattern of the dissemination barrier: its
// last call, with a digest of the calls before, to the member 2^k ahead. It sends the k-th when
// it has heard from the members up to 2^(k-1) behind and agrees with them. A rank that has
// heard all goodbyes meant for it knows that all members agree, because no rank passes on calls
// with which it does not agree. It waits for a late member until the context ends, and not for
// a member that has left. Goodbyes that arrive early are kept.

// aGoodbye, in the flags of a Call frame, says that its sender closes the Channel. Its
// tag is the digest of the sender's calls, and the bits from goodbyeShift on are k.
const (
	aGoodbye     = 2
	goodbyeShift = 2
	mostGoodbyes = 32 // enough for 2^32 ranks
)

// A goodbye is the message of a member that closes the Channel.
type goodbye struct {
	come   bool
	seq    uint64 // of its last call
	digest int32  // of the calls up to it
}

// A parting holds the goodbyes of the members of a Channel.
type parting struct {
	heard  [mostGoodbyes]goodbye // by k
	waiter *waiter
	src    int // member whose goodbye it waits for
}

// Part compares the calls made here with those of the other members, before this one
// closes the Channel. It waits for members that have not left, at most until ctx ends,
// and returns why the Channel is broken, nil while it works.
func (rd *Round) Part(ctx context.Context) error {
	e := rd.ch.e
	e.progress.Lock()
	defer e.exitPolling()
	if rd.seq == 0 || rd.past[rd.seq%pastCalls].NeedsAll() {
		return rd.ch.err
	}
	for k, d := 0, 1; d < rd.ch.size && rd.ch.err == nil; k, d = k+1, 2*d {
		rd.bid(k, (rd.ch.rank+d)%rd.ch.size)
		rd.hear(ctx, k, rd.teller(k))
		if g := &rd.parting.heard[k]; g.come && g.seq == rd.seq && !rd.agreed(rd.queue(rd.teller(k)), g.digest) {
			rd.awaitParting(ctx, rd.teller(k), func() bool { return false })
			rd.differBefore(rd.teller(k))
		}
	}
	if rd.ch.breaking {
		rd.ch.awaitReason()
	}
	return rd.ch.err
}

// teller returns the member that sends the k-th goodbye to this one.
func (rd *Round) teller(k int) int {
	return (rd.ch.rank + rd.ch.size - 1<<k) % rd.ch.size
}

// bid sends the k-th goodbye to a member, if that has not left.
func (rd *Round) bid(k, to int) {
	e, p := rd.ch.e, rd.ch.e.peer(rd.ch.World(to))
	if rd.ch.usable(p) != nil {
		return
	}
	e.h = transport.Header{Kind: transport.Call, Flags: uint8(aGoodbye | k<<goodbyeShift), Comm: rd.ch.ID, Seq: rd.seq, Tag: rd.digested()}
	e.h.A, e.h.B = rd.past[rd.seq%pastCalls].Words()
	e.post(p, mem.Buffer{}, 0)
}

// hear waits for the k-th goodbye.
func (rd *Round) hear(ctx context.Context, k, from int) {
	rd.awaitParting(ctx, from, func() bool { return rd.parting.heard[k].come })
}

// awaitParting waits for a member that has not left until done, or ctx or the Channel
// ends.
func (rd *Round) awaitParting(ctx context.Context, from int, done func() bool) {
	e, p := rd.ch.e, rd.ch.e.peer(rd.ch.World(from))
	for !done() && ctx.Err() == nil && rd.ch.err == nil && !rd.ch.hasLeft(from) {
		w := e.newWaiter()
		w.Hint = p.rank
		rd.parting.waiter, rd.parting.src = w, from
		e.progress.Await(ctx, &w.Waiter)
		rd.parting.waiter = nil
		e.freeWaiter(w)
	}
	if !done() && rd.ch.err == nil {
		e.drain() // the host segment may tell that a member has left before its last frames are read
	}
	if !done() && rd.ch.err == nil && ctx.Err() == nil {
		rd.ch.awaitReason() // who leaves in good order has said goodbye
	}
}

// hasLeft reports whether a member has left, so that nothing more will come from it.
func (ch *Channel) hasLeft(rank int) bool {
	left, w := ch.e.cfg.Left, ch.World(rank)
	return ch.gone(rank) != nil || ch.e.peer(w).tr == nil || left != nil && left(w)
}

// parted stores a goodbye.
func (rd *Round) parted(m *message) {
	k := int(m.typ) >> goodbyeShift
	if k >= mostGoodbyes || 1<<k >= rd.ch.size || rd.teller(k) != m.src {
		return
	}
	rd.parting.heard[k] = goodbye{true, m.seq, int32(m.tag)}
	rd.ch.e.rouse(rd.parting.waiter)
}
