package round

import (
	"gompi/internal/core/message"
	"gompi/internal/core/payload"
	"gompi/internal/core/peers"
	"gompi/internal/core/shmsync"
	"gompi/internal/fifo"
	"gompi/internal/mem"
	"gompi/transport"
)

// A peerQueue holds the rounds' messages to a member and from this member.
type peerQueue struct {
	rd         *Round
	src        int // rank in the communicator
	p          *peers.Peer
	posted     fifo.Queue[*message.Request] // receives without a message
	unexpected fifo.Queue[*message.Kept]    // messages without a receive
	out        fifo.Queue[*message.Request] // sends that may not leave yet
	grants     fifo.Queue[grant]            // of the peer: long messages that the peer is ready for
	early      fifo.Queue[earlyCall]
	newest     uint64       // number of the last early call, also after its removal
	differs    bool         // the peer was notified that its calls have another digest
	credit     peers.Credit // for short messages
}

// An earlyCall is another rank's call of a round that has not begun here.
type earlyCall struct {
	seq  uint64
	call shmsync.EncodedCall
}

// A grant is the content of a Ready frame.
type grant struct {
	seq   uint64 // the round
	offer bool   // the message is to be offered
}

// wantRTS, in the flags of a Ready frame, asks for an Offer frame before the payload.
const wantRTS = 1

func (rd *Round) queue(rank int) *peerQueue {
	l := rd.queues[rank]
	if l == nil {
		if rd.queues == nil {
			rd.queues = map[int]*peerQueue{}
		}
		l = &peerQueue{rd: rd, src: rank, p: rd.ch.Peer(rank)}
		rd.queues[rank] = l
	}
	return l
}

// holds reports whether a message of round seq is kept in l.
func (l *peerQueue) holds(seq uint64) bool {
	m := l.unexpected.Front()
	return m != nil && m.Seq == seq
}

// pump sends the messages of l that may leave, in order, or offers them.
func (l *peerQueue) pump() {
	rd := l.rd
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
		h := l.p.Frame(transport.Header{Kind: transport.Coll, Flags: uint8(r.Buf.Type()), Comm: rd.ch.ID, Seq: rd.seq,
			Tag: rd.digested()})
		if offered || !r.Buf.IsHost() { // the message then goes as after an RTS
			r.Stage = payload.Announced
			h.Kind, h.A, h.B = transport.Offer, uint64(r.Size), rd.ch.Engine.Stamp(r)
			l.p.Post(h, mem.Buffer{}, 0)
			continue
		}
		h.A, h.B, r.Stage = rd.call.A, rd.call.B, payload.Leaving
		if rd.ch.Engine.Give(r, h) {
			rd.ch.Engine.Finish(r, nil)
		}
	}
}

// admit reports whether r may leave: a short message within the budget, a long message when its
// receiver is ready, which may want an offer.
func (l *peerQueue) admit(r *message.Request) (admitted, offered bool) {
	if r.Size > message.CollectiveEager {
		if l.grants.Front().seq != l.rd.seq {
			return false, false
		}
		return true, l.grants.Pop().offer
	}
	cost := peers.Cost(r.Size)
	if !l.credit.Covers(cost, peers.Budget) {
		return false, false
	}
	l.credit.Spend(cost)
	return true, false
}

// credited notes credit that the peer has returned.
func (l *peerQueue) credited(n uint64) {
	l.credit.Regain(n)
	l.pump()
}

// returnCredit notes that the memory of a message of n bytes was released, and sends the credit
// when it has reached a quarter of the budget. Long messages take no credit.
func (l *peerQueue) returnCredit(n int) {
	if n > message.CollectiveEager {
		return
	}
	if l.credit.Owe(peers.Cost(n)) >= peers.Budget/4 && l.p.Reachable() {
		l.p.SendHeader(transport.Header{Kind: transport.Credit, Comm: l.rd.ch.ID, B: l.credit.Return()})
	}
}

// waitsToSend returns the bytes of the long message that waits for its receiver, 0 if none.
func (l *peerQueue) waitsToSend() int {
	if r := l.out.Front(); r != nil && r.Size > message.CollectiveEager {
		return r.Size
	}
	return 0
}
