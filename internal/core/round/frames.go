package round

import (
	"math"

	"gompi/internal/core/call"
	"gompi/internal/core/message"
	"gompi/internal/core/shmsync"
	"gompi/transport"
)

// In the flags of a Call frame, anAnswer states that the frame is an answer, and aRecall that it
// ends a recall.
const (
	anAnswer = 1
	aRecall  = 1 << 7
)

// Frame implements message.Collectives.
func (rd *Round) Frame(m *message.Kept) (r *message.Request, kept bool) {
	switch {
	case rd.byFlags: // nothing is sent
		return nil, false
	case m.Kind == transport.Coll:
		return rd.payload(m)
	case m.Kind == transport.Offer:
		rd.offered(m)
		return nil, false
	case m.Kind == transport.Credit:
		rd.queue(m.Src).credited(m.B)
		return nil, false
	}
	agreed := rd.checkFrame(m)
	switch l := rd.queue(m.Src); {
	case m.Kind == transport.Call && m.Type&aRecall != 0:
		rd.differBefore(m.Src)
	case m.Kind == transport.Call && m.Type&aGoodbye != 0:
		rd.parted(m)
	case !agreed:
	case m.Kind == transport.Ready:
		l.grants.Push(grant{m.Seq, m.Type == wantRTS})
		l.pump()
	case m.Seq == rd.seq:
		rd.compare(l, m)
	}
	return nil, false
}

// payload handles a Coll frame, and returns the receive that m is for. Without a receive, m is kept
// for a later one, or contradicts this rank's call, which breaks the Channel.
func (rd *Round) payload(m *message.Kept) (r *message.Request, kept bool) {
	if !rd.checkFrame(m) {
		return nil, false
	}
	l := rd.queue(m.Src)
	r = l.posted.Front()
	if m.Seq != rd.seq || r == nil {
		if m.Size > message.CollectiveEager { // no receiver reported to be ready for m
			rd.disagree(m, call.Block{}, block(m))
			return nil, false
		}
		if l.unexpected.Push(m); rd.ch.Engine.KeepPaid(m) {
			l.returnCredit(m.Size)
		}
		return nil, true
	}
	if !rd.agreed(l, int32(m.Tag)) {
		return nil, false
	}
	l.posted.Pop()
	if !rd.fits(r, m) {
		return nil, false
	}
	l.returnCredit(m.Size)
	return r, false
}

// pair gives a kept message to r.
func (rd *Round) pair(l *peerQueue, r *message.Request, m *message.Kept) {
	if !rd.fits(r, m) {
		rd.ch.Engine.Drop(m)
		return
	}
	if !m.Paid {
		l.returnCredit(m.Size)
	}
	rd.ch.Take(r, m)
}

// offered handles the Offer of a long message, the answer to this rank's Ready.
func (rd *Round) offered(m *message.Kept) {
	if !rd.running || m.Seq != rd.seq {
		return // no round waits for m
	}
	m.A, m.B = rd.call.A, rd.call.B
	l := rd.queue(m.Src)
	r := l.posted.Front()
	switch {
	case r == nil || r.Combines():
		rd.disagree(m, call.Block{}, block(m))
		return
	case !rd.agreed(l, int32(m.Tag)):
		return
	}
	l.posted.Pop()
	if rd.fits(r, m) {
		rd.ch.Engine.Stamp(r)
		r.Request(m.Offer)
	}
}

// fits breaks the Channel if a message has not the size and type that its receive expects, as when
// ranks pass different counts to a v collective.
func (rd *Round) fits(r *message.Request, m *message.Kept) bool {
	if m.Size == r.Size && (m.Type == r.Buf.Type() || m.Size == 0) {
		return true
	}
	rd.disagree(m, call.BlockOf(r.Buf), block(m))
	rd.ch.Engine.Finish(r, rd.ch.Broken())
	return false
}

// block returns the block of a message.
func block(m *message.Kept) call.Block {
	if m.Size == 0 {
		return call.Block{}
	}
	return call.Block{Bytes: int64(m.Size), Type: m.Type}
}

// sendFrame sends a frame without payload about the running round. A Call frame carries, as its
// tag, how many bytes this rank waits to send, or that they are 2 GiB or more.
func (rd *Round) sendFrame(l *peerQueue, k transport.Kind, flags uint8) {
	h := transport.Header{Kind: k, Flags: flags, Comm: rd.ch.ID, Seq: rd.seq, A: rd.call.A, B: rd.call.B}
	if k == transport.Call {
		h.Tag = int32(min(l.waitsToSend(), math.MaxInt32))
	}
	l.p.SendHeader(h)
}

// sendCall sends a Call frame, if l's peer is reachable.
func (rd *Round) sendCall(l *peerQueue) {
	if l.p.Reachable() {
		rd.sendFrame(l, transport.Call, 0)
	}
}

// compare handles a Call frame of the running round. Its sender waits. If the sender waits to
// send a long message where this rank expects a short one, for which this rank will not report to
// be ready, both wait forever. If this rank waits to send, it reports that once more: the other
// rank may not have been in the round the first time.
func (rd *Round) compare(l *peerQueue, m *message.Kept) {
	if r := l.posted.Front(); r != nil && m.Tag > 0 && r.Size <= message.CollectiveEager {
		rd.disagree(m, call.BlockOf(r.Buf), call.Block{Bytes: int64(m.Tag)})
		return
	}
	if m.Type != anAnswer && l.waitsToSend() > 0 {
		rd.sendFrame(l, transport.Call, anAnswer)
	}
}

// callOf returns the call that a frame carries.
func callOf(m *message.Kept) shmsync.EncodedCall { return shmsync.EncodedCall{A: m.A, B: m.B} }
