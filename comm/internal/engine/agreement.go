package engine

import (
	"math"

	"gompi/comm/internal/call"
	"gompi/internal/mem"
	"gompi/transport"
)

// This file is how the members of a Channel find out whether they have made the
// same call. Every frame of a Round carries its number and its call, and those with payload,
// or the offer of some, a digest of all calls so far: frames of a call may be late, or none
// may pass between the ranks that differ. Frames without payload say more where ranks wait.
// What differs breaks the Channel.

// pastCalls is how many finished rounds late frames can still be compared with.
const pastCalls = 64

// An earlyCall is what another rank called in a round that has not begun here.
type earlyCall struct {
	seq  uint64
	call call.Fingerprint
}

// say sends a frame without payload about the running round. A Call frame tells,
// as its tag, how many elements this rank waits to send.
func (rd *Round) say(l *lane, k transport.Kind, flags uint8) {
	e := rd.ch.e
	e.h = transport.Header{Kind: k, Flags: flags, Comm: rd.ch.ID, Seq: rd.seq}
	e.h.A, e.h.B = rd.call.Words()
	if k == transport.Call {
		e.h.Tag = int32(min(l.waitsToSend(), math.MaxInt32))
	}
	e.post(l.p, mem.Buffer{}, 0)
}

// digested returns the digest of the calls up to the running or last one, as frames carry it.
func (rd *Round) digested() int32 { return int32(rd.digest >> 32) }

// digestAlso adds a call to the digest, which other calls hardly ever have.
func (rd *Round) digestAlso(f *call.Fingerprint) {
	const odd = 0x9e3779b97f4a7c15
	a, b := f.Words()
	rd.digest = ((rd.digest^a)*odd ^ b) * odd
}

// agreed reports whether the calls up to the running one have the digest that a frame from l
// carries. If not, the frame must not count, or this rank would pass on, with what it sends
// next, that all agree; and its sender is asked which of them differs, once.
func (rd *Round) agreed(l *lane, digest int32) bool {
	if digest == rd.digested() {
		return true
	}
	switch {
	case rd.ch.usable(l.p) != nil: // it will not answer
		rd.differBefore(l.src)
	case !l.differs:
		l.differs = true
		rd.recall(l.src)
	}
	return false
}

// recall tells a member what this rank has called, from the oldest call that is
// remembered to the running one: one of them was another call there.
func (rd *Round) recall(rank int) {
	l, e := rd.lane(rank), rd.ch.e
	if l.p.lost != nil || l.p.tr == nil {
		return
	}
	for seq := rd.seq - min(rd.seq, pastCalls) + 1; seq < rd.seq; seq++ {
		e.h = transport.Header{Kind: transport.Call, Comm: rd.ch.ID, Seq: seq}
		e.h.A, e.h.B = rd.past[seq%pastCalls].Words()
		e.post(l.p, mem.Buffer{}, 0)
	}
	rd.say(l, transport.Call, aRecall)
}

// told handles Ready and Call frames.
func (rd *Round) told(m *message) {
	agreed := rd.heard(m)
	switch {
	case m.kind == transport.Call && m.typ&aRecall != 0:
		rd.differBefore(m.src)
	case m.kind == transport.Call && m.typ&aGoodbye != 0:
		rd.parted(m)
	case agreed:
		l := rd.lane(m.src)
		switch {
		case m.kind == transport.Ready:
			l.readies.Push(readiness{m.seq, m.typ == toOffer})
			l.pump()
		case m.seq == rd.seq:
			rd.compare(l, m)
		}
	}
	rd.ch.e.freeMessage(m)
}

// In the flags of a Call frame, anAnswer says that it answers one, and aRecall that it ends
// a recall.
const (
	anAnswer = 1
	aRecall  = 1 << 7
)

// compare handles a Call frame of the running round. Its sender waits; if it
// waits to send what this rank does not expect, both wait forever. If this rank
// waits to send, it says so once more: the other may not have been in the round
// the first time.
func (rd *Round) compare(l *lane, m *message) {
	if r := l.posted.Front(); r != nil && m.tag > 0 {
		theirs := m.tag * rd.call.Type.Size()
		if r.size <= roundEager || r.size != theirs && m.tag < math.MaxInt32 {
			rd.disagree(m, r.size, theirs)
			return
		}
	}
	if m.typ != anAnswer && l.waitsToSend() > 0 {
		rd.say(l, transport.Call, anAnswer)
	}
}

// heard compares the call of a frame with the one made here. It reports false if
// they differ, and for a frame of a finished round that nothing waits for.
func (rd *Round) heard(m *message) bool {
	switch {
	case m.seq > rd.seq:
		rd.remember(m)
		return true
	case m.seq == rd.seq && rd.running:
		return rd.check(m.src, m.seq, m.call)
	case rd.seq-m.seq < pastCalls:
		if rd.check(m.src, m.seq, m.call) && m.kind == transport.Coll {
			rd.disagree(m, 0, m.size)
		}
	}
	return false
}

// remember keeps the call of a round that has not begun here, once per rank. A
// rank that only sends, such as the root of many a Bcast, may be far ahead.
func (rd *Round) remember(m *message) {
	l := rd.lane(m.src)
	if m.seq <= l.newest {
		return
	}
	l.newest = m.seq
	if l.early.Len() == 0 {
		rd.ahead = append(rd.ahead, l)
	}
	l.early.Push(earlyCall{m.seq, m.call})
}

// check breaks the Channel if another rank's call differs from the one here.
func (rd *Round) check(src int, seq uint64, theirs call.Fingerprint) bool {
	mine := rd.call
	if seq != rd.seq || !rd.running {
		mine = rd.past[seq%pastCalls]
	}
	if mine == theirs {
		return true
	}
	rd.ch.breakUp(verdict{rank: rd.ch.e.cfg.Rank, mismatch: &MismatchError{
		Seq: seq, Rank: rd.ch.rank, Peer: src, Call: mine, PeerCall: theirs}})
	return false
}

// offered handles the offer of a long message, for which its receiver has said that
// it is ready.
func (rd *Round) offered(l *lane, h *transport.Header) {
	if !rd.running || h.Seq != rd.seq {
		return // nobody waits for it
	}
	m := message{src: l.src, seq: rd.seq, call: rd.call, size: int(min(h.A, transport.MaxPayload))}
	r := l.posted.Front()
	switch {
	case r == nil || r.combine != nil:
		rd.disagree(&m, 0, m.size)
		return
	case !rd.agreed(l, h.Tag):
		return
	}
	l.posted.Pop()
	if rd.fits(r, &m) {
		r.other = h.B
		rd.ch.e.demand(l.p, r)
	}
}

// fits breaks the Channel if a message has not the size its receive expects,
// which happens when the counts of a v form do not agree.
func (rd *Round) fits(r *Request, m *message) bool {
	if m.size == r.size {
		return true
	}
	rd.disagree(m, r.size, m.size)
	rd.ch.e.finish(r, rd.ch.err)
	return false
}

// disagree breaks the Channel because of m, whose sender made the same call but
// sends another number of bytes than this rank expects.
func (rd *Round) disagree(m *message, mine, theirs int) {
	rd.ch.breakUp(verdict{rank: rd.ch.e.cfg.Rank, mismatch: &MismatchError{
		Seq: m.seq, Rank: rd.ch.rank, Peer: m.src, Call: m.call, PeerCall: m.call,
		Bytes: int64(mine), PeerBytes: int64(theirs)}})
}

// differBefore breaks the Channel because a call before the running or last one was another
// one on src. Where it is known which, the Channel is broken already, or will be as soon as
// the launcher says what another rank has found: src may have left because of that.
func (rd *Round) differBefore(src int) {
	rd.ch.hearWhy()
	f := rd.past[rd.seq%pastCalls]
	if rd.running {
		f = rd.call
	}
	rd.ch.breakUp(verdict{rank: rd.ch.e.cfg.Rank, mismatch: &MismatchError{
		Seq: rd.seq, Rank: rd.ch.rank, Peer: src, Call: f, PeerCall: f}})
}

// stalled tells those this round waits for what it waits in, once per wait.
func (rd *Round) stalled() {
	for _, l := range rd.lanes {
		switch {
		case l.p.lost != nil || l.p.tr == nil:
		case l.waitsToSend() > 0 || l.posted.Front() != nil:
			rd.say(l, transport.Call, 0)
		}
	}
}

// DisagreeOn breaks the Channel: src sends another number of bytes than this rank
// expects.
func (rd *Round) DisagreeOn(src, mine, theirs int) error {
	return rd.ch.vigil.mismatch(&MismatchError{Seq: rd.seq, Rank: rd.ch.rank, Peer: src, Call: rd.call, PeerCall: rd.call,
		Bytes: int64(mine), PeerBytes: int64(theirs)})
}
