package engine

import (
	"gompi/internal/fifo"
	"gompi/internal/mem"
	"gompi/transport"
)

// A peerQueue holds what rounds send to one member and receive from it.
type peerQueue struct {
	rd         *Round
	src        int // rank in the communicator
	p          *peer
	posted     fifo.Queue[*Request] // receives without a message
	unexpected fifo.Queue[*message] // messages without a receive
	out        fifo.Queue[*Request] // sends that may not leave yet
	grants     fifo.Queue[grant]    // of the peer: long messages that it is ready for
	early      fifo.Queue[earlyCall]
	newest     uint64 // number of the last of early, also when it is gone
	differs    bool   // the peer was told that its calls have another digest
	inFlight   int    // cost of short messages for which the peer has not returned credit
	free       int    // credit that is to be returned to the peer
}

// A grant is the content of a Ready frame.
type grant struct {
	seq   uint64 // the round
	offer bool   // the message is to be offered
}

// wantRTS, in the flags of a Ready frame, asks for an Offer frame before the payload.
const wantRTS = 1

// holds reports whether a message of round seq is kept in l.
func (l *peerQueue) holds(seq uint64) bool {
	m := l.unexpected.Front()
	return m != nil && m.seq == seq
}

// pump sends what may leave of l, in order, or offers it.
func (l *peerQueue) pump() {
	rd, e := l.rd, l.rd.ch.e
	for {
		r := l.out.Front()
		if r == nil {
			return
		}
		admitted, offered := l.admit(r)
		if !admitted {
			return
		}
		l.out.Pop()
		if offered || !r.buf.IsHost() {
			l.offer(r)
			continue
		}
		r.stage = leaving
		e.h = transport.Header{Kind: transport.Coll, Flags: uint8(r.buf.Type()), Comm: rd.ch.ID, Seq: rd.seq, Tag: rd.digested()}
		e.h.A, e.h.B = rd.call.Words()
		if e.give(l.p, r, r.buf.Raw()) {
			e.finish(r, nil)
		}
	}
}

// admit reports whether r may leave: a short message within the budget, a long
// one when its receiver is ready, which may want it offered.
func (l *peerQueue) admit(r *Request) (admitted, offered bool) {
	if r.size > roundEager {
		if l.grants.Front().seq != l.rd.seq {
			return false, false
		}
		return true, l.grants.Pop().offer
	}
	if l.inFlight+cost(r.size) > budget {
		return false, false
	}
	l.inFlight += cost(r.size)
	return true, false
}

// offer tells the receiver of r that it waits here. A long message with a device on
// one side or on both then goes as one after an RTS does: see devices.go.
func (l *peerQueue) offer(r *Request) {
	e := l.rd.ch.e
	r.stage = announced
	e.h = transport.Header{Kind: transport.Offer, Flags: uint8(r.buf.Type()), Comm: l.rd.ch.ID, Seq: l.rd.seq, Tag: l.rd.digested(),
		A: uint64(r.size), B: e.stamp(r)}
	e.post(l.p, mem.Buffer{}, 0)
}

// returnCredit counts that a message of n bytes is no longer held here, and sends the credit when
// it has come to a quarter of the budget. Long messages take no credit.
func (l *peerQueue) returnCredit(n int) {
	if n > roundEager {
		return
	}
	l.free += cost(n)
	if l.free < budget/4 || l.p.tr == nil || l.p.lost != nil {
		return
	}
	e := l.rd.ch.e
	e.h = transport.Header{Kind: transport.Credit, Comm: l.rd.ch.ID, B: uint64(l.free)}
	l.free = 0
	e.post(l.p, mem.Buffer{}, 0)
}

// waitsToSend returns how many bytes the long message has whose receiver is not ready, 0 if there
// is none.
func (l *peerQueue) waitsToSend() int {
	if r := l.out.Front(); r != nil && r.size > roundEager {
		return r.size
	}
	return 0
}
