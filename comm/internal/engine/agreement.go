package engine

import (
	"math"

	"gompi/comm/internal/call"
	"gompi/comm/internal/liveness"
	"gompi/internal/mem"
	"gompi/transport"
)

// This file checks that the members of a Channel make the same calls. Every frame of a Round
// carries the number and the call of its Round. Frames that carry or offer payload also carry
// a digest of all calls so far, because frames of a call may be late, and ranks whose calls
// differ may exchange none. Ranks that wait send Call frames. A difference breaks the Channel.

// pastCalls is how many finished rounds are kept, to compare late frames with.
const pastCalls = 64

// An earlyCall is another rank's call of a round that has not begun here.
type earlyCall struct {
	seq  uint64
	call call.Fingerprint
}

// say sends a frame without payload about the running round. A Call frame tells, as its tag, how
// many bytes this rank waits to send, or that they are 2 GiB or more.
func (rd *Round) say(l *peerQueue, k transport.Kind, flags uint8) {
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

// digestAlso adds a call to the digest. Different calls hardly ever have the same digest.
func (rd *Round) digestAlso(f *call.Fingerprint) {
	const odd = 0x9e3779b97f4a7c15
	a, b := f.Words()
	rd.digest = ((rd.digest^a)*odd ^ b) * odd
}

// agreed reports whether the calls up to the running one have the digest that a frame from l
// carries. If not, the frame must not count, or this rank would pass on, with what it sends
// next, that all agree; and its sender is asked which of them differs, once.
func (rd *Round) agreed(l *peerQueue, digest int32) bool {
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

// recall sends a member the calls of this rank, from the oldest remembered one to the running
// one: the member has made a different call in one of these rounds.
func (rd *Round) recall(rank int) {
	l, e := rd.queue(rank), rd.ch.e
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

// told handles a Ready or Call frame.
func (rd *Round) told(m *message) {
	agreed := rd.heard(m)
	switch {
	case m.kind == transport.Call && m.typ&aRecall != 0:
		rd.differBefore(m.src)
	case m.kind == transport.Call && m.typ&aGoodbye != 0:
		rd.parted(m)
	case agreed:
		l := rd.queue(m.src)
		switch {
		case m.kind == transport.Ready:
			l.grants.Push(grant{m.seq, m.typ == wantRTS})
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

// compare handles a Call frame of the running round. Its sender waits; if it waits to send a long
// message where this rank expects a short one, for which it will not say that it is ready, both
// wait forever. If this rank waits to send, it says so once more: the other may not have been in
// the round the first time.
func (rd *Round) compare(l *peerQueue, m *message) {
	if r := l.posted.Front(); r != nil && m.tag > 0 && r.size <= roundEager {
		rd.disagree(m, call.BlockOf(r.buf), call.Block{Bytes: int64(m.tag)})
		return
	}
	if m.typ != anAnswer && l.waitsToSend() > 0 {
		rd.say(l, transport.Call, anAnswer)
	}
}

// heard compares the call of a frame with the call made here. It reports false if they
// differ, and for a frame of a finished round.
func (rd *Round) heard(m *message) bool {
	switch {
	case m.seq > rd.seq:
		rd.remember(m)
		return true
	case m.seq == rd.seq && rd.running:
		return rd.check(m.src, m.seq, m.call)
	case rd.seq-m.seq < pastCalls:
		if rd.check(m.src, m.seq, m.call) && m.kind == transport.Coll {
			rd.disagree(m, call.Block{}, m.block())
		}
	}
	return false
}

// remember keeps the call of a round that has not begun here, once per rank. A rank that only
// sends, such as the root of several Bcasts, may be many rounds ahead.
func (rd *Round) remember(m *message) {
	l := rd.queue(m.src)
	if m.seq <= l.newest {
		return
	}
	l.newest = m.seq
	if l.early.Len() == 0 {
		rd.early = append(rd.early, l)
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
	rd.ch.breakUp(liveness.Reason{Rank: rd.ch.e.cfg.Rank, Mismatch: &liveness.MismatchError{
		Seq: seq, Rank: rd.ch.rank, Peer: src, Call: mine, PeerCall: theirs}})
	return false
}

// offered handles the offer of a long message, for which its receiver has said that
// it is ready.
func (rd *Round) offered(l *peerQueue, h *transport.Header) {
	if !rd.running || h.Seq != rd.seq {
		return // nobody waits for it
	}
	m := message{src: l.src, typ: mem.Type(h.Flags), seq: rd.seq, call: rd.call, size: int(min(h.A, transport.MaxPayload))}
	r := l.posted.Front()
	switch {
	case r == nil || r.combine != nil:
		rd.disagree(&m, call.Block{}, m.block())
		return
	case !rd.agreed(l, h.Tag):
		return
	}
	l.posted.Pop()
	if rd.fits(r, &m) {
		r.other = h.B
		rd.ch.e.requestData(l.p, r)
	}
}

// fits breaks the Channel if a message has not the size and type that its receive expects, as when
// ranks pass different counts to a v collective.
func (rd *Round) fits(r *Request, m *message) bool {
	if m.size == r.size && (m.typ == r.buf.Type() || m.size == 0) {
		return true
	}
	rd.disagree(m, call.BlockOf(r.buf), m.block())
	rd.ch.e.finish(r, rd.ch.err)
	return false
}

// block returns what the sender of a collective's message has sent.
func (m *message) block() call.Block {
	if m.size == 0 {
		return call.Block{}
	}
	return call.Block{Bytes: int64(m.size), Type: m.typ}
}

// disagree breaks the Channel because of m, whose sender made the same call but sends another block
// than this rank expects.
func (rd *Round) disagree(m *message, mine, theirs call.Block) {
	rd.ch.breakUp(liveness.Reason{Rank: rd.ch.e.cfg.Rank, Mismatch: rd.ch.differOn(m.seq, m.src, m.call, mine, theirs)})
}

// differOn returns the error where two ranks made the same call f.
func (ch *Channel) differOn(seq uint64, src int, f call.Fingerprint, mine, theirs call.Block) *liveness.MismatchError {
	return &liveness.MismatchError{Seq: seq, Rank: ch.rank, Peer: src, Call: f, PeerCall: f, Block: mine, PeerBlock: theirs}
}

// differBefore breaks the Channel because src made a different call before the running or last
// one. If another rank knows which call, the Channel is broken already, or will be when the
// launcher passes its reason on: src may have left because of that.
func (rd *Round) differBefore(src int) {
	f := rd.past[rd.seq%pastCalls]
	if rd.running {
		f = rd.call
	}
	why := liveness.Reason{Rank: rd.ch.e.cfg.Rank, Mismatch: rd.ch.differOn(rd.seq, src, f, call.Block{}, call.Block{})}
	rd.ch.breakSoon(func() bool { return false }, func() liveness.Reason { return why })
}

// stalled sends a Call frame to the members that this round waits for, once per wait.
func (rd *Round) stalled() {
	for _, l := range rd.queues {
		switch {
		case l.p.lost != nil || l.p.tr == nil:
		case l.waitsToSend() > 0 || l.posted.Front() != nil:
			rd.say(l, transport.Call, 0)
		}
	}
}

// DisagreeOn breaks the Channel: src sends another block than this rank expects, as their words
// say (see call.Transfer.Lengths).
func (rd *Round) DisagreeOn(src, mine, theirs int) error {
	return rd.ch.flagWait.disagreeOn(rd.seq, src, rd.call, mine, theirs)
}
