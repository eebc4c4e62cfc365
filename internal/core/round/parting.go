package round

import (
	"context"
	"sync/atomic"

	"gompi/internal/core/message"
	"gompi/internal/core/progress"
	"gompi/transport"
)

// This file checks, before a Channel is closed, that its members have made the same calls. Some
// collectives end on a rank that has received nothing: the root of a Bcast sends and returns. If
// that was its last call, no later call shows that others passed another root. So a rank that
// closes a Channel sends goodbyes, in the pattern of the dissemination barrier: its last call, with
// a digest of the calls before, to the member 2^k ahead. It sends the k-th when it has received the
// goodbyes of the members up to 2^(k-1) behind, and agrees with them. A rank that has received all
// goodbyes meant for it knows that all members agree, because no rank passes on calls with which it
// does not agree, and none that has not received a goodbye sends further ones. It waits for a late
// member until the context ends, and not for a member that has left: a member that leaves in good
// order has sent its goodbyes. Early goodbyes are kept, and compared in any case. Where all
// collectives go through shared memory, it compares the calls that are there.

// aGoodbye, in the flags of a Call frame, states that its sender closes the Channel. Its tag is the
// digest of the sender's calls, and the bits from goodbyeShift on are k.
const (
	aGoodbye     = 2
	goodbyeShift = 2
	mostGoodbyes = 32 // enough for 2^32 ranks
)

// A goodbye is the message of a member that closes the Channel.
type goodbye struct {
	arrived atomic.Uint64 // 1 when the goodbye has arrived
	seq     uint64        // of its last call
	digest  int32         // of all its calls
}

// A parting holds the goodbyes of the members of a Channel.
type parting struct {
	received [mostGoodbyes]goodbye // by k
	closes   bool                  // Part was called
}

// Part compares this rank's calls with the other members' calls, before this rank closes the
// Channel. Part waits for members that have not left, at most until ctx ends, and returns why the
// Channel is broken, nil while it works.
func (rd *Round) Part(ctx context.Context) error {
	rd.ctx, rd.ticket, rd.quiet, rd.parting.closes = ctx, 0, progress.PlaceOf(ctx).Background, true
	if rd.byFlags {
		if err := rd.team.Compare(); err != nil {
			return err
		}
		return rd.ch.Err()
	}
	rd.progress.Lock()
	defer rd.ch.Engine.ExitPolling()
	last := rd.fingerprint()
	if rd.seq == 0 || last.NeedsAll() {
		return rd.ch.Broken()
	}
	agree := true
	for k, d := 0, 1; d < rd.ch.Size() && rd.ch.Broken() == nil; k, d = k+1, 2*d {
		if agree {
			rd.bid(k, (rd.ch.Rank()+d)%rd.ch.Size())
		}
		agree = rd.agrees(k) && agree
	}
	if rd.ch.Breaking() {
		rd.ch.AwaitReason(rd.quiet)
	}
	return rd.ch.Broken()
}

// agrees waits for the k-th goodbye to this member, and reports whether it has come and agrees.
func (rd *Round) agrees(k int) bool {
	from, g := rd.goodbyeSource(k), &rd.parting.received[k]
	rd.awaitMember(&g.arrived, 1, from)
	switch {
	case g.arrived.Load() == 0 || g.seq != rd.seq:
		return false
	case rd.agreed(rd.queue(from), g.digest):
		return true
	}
	var never atomic.Uint64
	rd.awaitMember(&never, 1, from)
	rd.differBefore(from)
	return false
}

// PartWaits reports whether Part may wait for other members. No collective runs.
func (rd *Round) PartWaits() bool {
	if rd.byFlags {
		return !rd.team.Compared()
	}
	last := rd.fingerprint()
	return rd.seq > 0 && !last.NeedsAll()
}

// goodbyeSource returns the member that sends the k-th goodbye to this member.
func (rd *Round) goodbyeSource(k int) int {
	return (rd.ch.Rank() + rd.ch.Size() - 1<<k) % rd.ch.Size()
}

// bid sends the k-th goodbye to a member, if that has not left.
func (rd *Round) bid(k, to int) {
	p := rd.ch.Peer(to)
	if rd.ch.Usable(p) == nil {
		p.SendHeader(transport.Header{Kind: transport.Call, Flags: uint8(aGoodbye | k<<goodbyeShift), Comm: rd.ch.ID,
			Seq: rd.seq, Tag: rd.digested(), A: rd.call.A, B: rd.call.B})
	}
}

// parted stores a goodbye.
func (rd *Round) parted(m *message.Kept) {
	k := int(m.Type) >> goodbyeShift
	if k >= mostGoodbyes || 1<<k >= rd.ch.Size() || rd.goodbyeSource(k) != m.Src {
		return
	}
	g := &rd.parting.received[k]
	g.seq, g.digest = m.Seq, int32(m.Tag)
	g.arrived.Store(1)
}
