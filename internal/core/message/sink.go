package message

import (
	"fmt"

	"gompi/internal/core/liveness"
	"gompi/internal/core/payload"
	"gompi/internal/core/peers"
	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// This file handles the frames that transports deliver, inside their Poll or Close, with the lock.

var (
	_ transport.Sink      = (*Engine)(nil)
	_ transport.EagerSink = (*Engine)(nil)
)

// Arrive implements transport.Sink.
func (e *Engine) Arrive(from world.Rank, h *transport.Header) (mem.Buffer, uint64) {
	p := e.Peers.Peer(from)
	switch h.Kind {
	case transport.Credit:
		e.credited(p, h)
		return mem.Buffer{}, 0
	case transport.CTS:
		e.cleared(p, h)
		return mem.Buffer{}, 0
	case transport.Data:
		r, _ := e.tokens.Get(h.A)
		if r == nil || r.Peer != p || !r.Expects(h.Len) {
			return mem.Buffer{}, 0 // its receive has ended
		}
		return e.fill(r, int(h.Len))
	case transport.Done:
		if r, _ := e.tokens.Get(h.A); r != nil && r.MayBeReached(p) {
			e.Finish(r, nil)
		}
		return mem.Buffer{}, 0
	case transport.Flush:
		payload.AnswerFlush(p, h)
		return mem.Buffer{}, 0
	case transport.Flushed:
		e.Mover.Flushed(p.Rank, h.A)
		return mem.Buffer{}, 0
	case transport.Withdraw:
		e.withdrawOffer(p, h)
		return mem.Buffer{}, 0
	case transport.Withdrawn:
		e.offerWithdrawn(p, h)
		return mem.Buffer{}, 0
	case transport.Left:
		e.Live.LeftComm(p, h.Comm)
		return mem.Buffer{}, 0
	case transport.Revoke:
		if h.Len == 0 || h.Len > liveness.MaxReason {
			return mem.Buffer{}, 0
		}
		m := e.newMessage()
		m.Kind, m.Peer, m.comm, m.Size = h.Kind, p, h.Comm, int(h.Len)
		return e.hold(m)
	}
	ch := e.channel(h.Comm)
	if ch == nil && e.Live.MayOpen(h.Comm) || ch != nil && ch.Broken() == nil && ch.Member(from) >= 0 {
		return e.deliver(ch, p, h)
	}
	if h.Kind == transport.Eager && h.Len <= peers.Budget { // for a broken or closed communicator
		e.room.ReturnCredit(p, int(h.Len))
	}
	e.Live.AnswerEnd(p, h)
	return mem.Buffer{}, 0
}

// Take implements transport.EagerSink: an eager message goes straight into a waiting receive.
func (e *Engine) Take(from world.Rank, h *transport.Header, data []byte) bool {
	switch h.Kind {
	case transport.Eager:
	case transport.Data:
		return e.takeData(e.Peers.Peer(from), h, data)
	default:
		return false
	}
	ch := e.channel(h.Comm)
	if ch == nil || ch.Broken() != nil {
		return false
	}
	src := ch.Member(from)
	if src < 0 {
		return false
	}
	n := ch.q.TakeRecv(src, int(h.Tag))
	if n == nil {
		return false
	}
	r, p := n.Val, e.Peers.Peer(from)
	r.peer, r.Peer = from, p
	r.matched(src, int(h.Tag), len(data), mem.Type(h.Flags))
	e.room.ReturnCredit(p, len(data))
	if r.ToDevice(len(data)) {
		copied := e.Mover.Scratch.Get(len(data))
		r.StoreEager(copied, copy(copied, data))
		return true
	}
	e.Finish(r, r.Store(data))
	return true
}

// takeData takes a Data frame that is unpacked.
func (e *Engine) takeData(p *peers.Peer, h *transport.Header, data []byte) bool {
	r, _ := e.tokens.Get(h.A)
	if r == nil || r.Peer != p || !r.Buf.IsScattered() || !r.Expects(h.Len) {
		return false
	}
	if done, err := r.Take(data); done {
		e.Finish(r, err)
	}
	return true
}

// Wants implements transport.EagerSink.
func (e *Engine) Wants(from world.Rank) bool {
	ch := e.latest
	if ch == nil {
		return false
	}
	src := ch.Member(from)
	return src >= 0 && ch.q.Awaits(src)
}

// unasked bounds a frame's payload without a posted receive. Senders within credit never exceed it.
func unasked(k transport.Kind) int64 {
	switch k {
	case transport.Eager:
		return peers.Budget
	case transport.Coll:
		return CollectiveEager
	}
	return 0
}

// deliver hands a frame to its Channel, nil if that does not exist yet.
func (e *Engine) deliver(ch *Channel, p *peers.Peer, h *transport.Header) (mem.Buffer, uint64) {
	if h.Len > unasked(h.Kind) && (ch == nil || h.Kind != transport.Coll) {
		e.Live.BreaksProtocol(p.Rank, fmt.Errorf("%w: %v frame of %d bytes", transport.ErrProtocol, h.Kind, h.Len))
		return mem.Buffer{}, 0
	}
	m := e.newMessage()
	m.Kind, m.Peer, m.Tag, m.Type = h.Kind, p, int(h.Tag), mem.Type(h.Flags)
	m.Seq, m.A, m.B, m.Size = h.Seq, h.A, h.B, int(h.Len)
	if h.Kind == transport.Offer {
		m.Size, m.Offer = int(min(h.A, transport.MaxPayload)), h.B
	}
	if h.Kind == transport.RTS {
		m.Size, m.Offer, m.place, m.ready = int(min(h.A, transport.MaxPayload)), h.B, h.Seq, true
		m.Type, m.short = mem.Type(h.Flags&^transport.Short), h.Flags&transport.Short != 0 && m.Size <= peers.MaxKept/16
	}
	if ch == nil {
		e.early[h.Comm] = append(e.early[h.Comm], m) // payload is within the sender's credit
		if h.Kind == transport.RTS || h.Kind == transport.Offer {
			return mem.Buffer{}, 0
		}
		return e.hold(m)
	}
	m.Src = ch.Member(p.Rank)
	var r *Request
	kept := true
	switch h.Kind {
	case transport.Eager:
		r = ch.receiver(m)
	case transport.RTS:
		ch.arrived(m)
		return mem.Buffer{}, 0
	case transport.Await:
		ch.Inquire(m.Src)
		e.freeMessage(m)
		return mem.Buffer{}, 0
	default:
		r, kept = ch.collectives.Frame(m)
	}
	switch {
	case r != nil:
		e.freeMessage(m)
		return e.fill(r, int(h.Len))
	case kept:
		return e.hold(m)
	}
	m.ready = true // the transport holds no window that m would have to forget
	e.Drop(m)
	return mem.Buffer{}, 0
}

// receiver returns the posted receive that the eager message m matches. Without such a receive m
// is queued and the result is nil.
func (ch *Channel) receiver(m *Kept) *Request {
	n := ch.q.Arrive(m.envelope())
	if n == nil {
		ch.rouseProbes()
		return nil
	}
	r := n.Val
	r.matched(m.Src, m.Tag, m.Size, m.Type)
	r.peer, r.Peer = m.Peer.Rank, m.Peer
	ch.Engine.room.ReturnCredit(m.Peer, m.Size)
	return r
}

// fill begins to receive n bytes of payload into r.
func (e *Engine) fill(r *Request, n int) (mem.Buffer, uint64) {
	w, done := r.Arrives(n)
	if done {
		e.Finish(r, nil)
		return mem.Buffer{}, 0
	}
	return w, e.Stamp(r)
}

// Filled implements transport.Sink.
func (e *Engine) Filled(token uint64) mem.Buffer {
	r, m := e.tokens.Get(token)
	switch {
	case r != nil && r.Stage == payload.Filling:
		w, done, err := r.Filled()
		if done {
			e.Finish(r, err)
		}
		return w
	case m != nil:
		e.tokens.Release(m.token)
		m.token, m.ready = 0, true
		switch {
		case m.Kind == transport.Revoke:
			e.Live.RevokedBy(m.Peer, m.comm, m.data)
			e.freeMessage(m)
		case m.taken != nil:
			m.taken.ch.consume(m.taken, m)
		}
	}
	return mem.Buffer{}
}

// cleared handles a CTS frame, which asks for the payload of a message, or for more of the payload.
func (e *Engine) cleared(p *peers.Peer, h *transport.Header) {
	r, _ := e.tokens.Get(h.A)
	if r == nil || r.Stage != payload.Announced || r.Peer != p {
		return // withdrawn in the meantime
	}
	if r.starved {
		p.Unexpected.AtPeer = 0
	}
	if r.Cleared(h) {
		e.Finish(r, nil)
	}
}

// Lost implements transport.Sink.
func (e *Engine) Lost(rank world.Rank, err error) { e.Live.TransportLost(rank, err) }

// Silent implements transport.SilenceSink.
func (e *Engine) Silent(rank world.Rank) { e.Live.Inquire(rank) }

// Sent implements transport.Sink.
func (e *Engine) Sent(token uint64, err error) {
	r, _ := e.tokens.Get(token)
	if r == nil {
		return
	}
	switch done, lost := r.Sent(err); {
	case lost != nil:
		e.stopped(token, r, lost)
	case done:
		e.Finish(r, nil)
	}
}

// stopped ends or keeps r after a transport has lost the connection to r's peer.
func (e *Engine) stopped(token uint64, r *Request, err error) {
	p := r.Peer
	suspected := e.Live.Suspected(p.Rank, err)
	if still, _ := e.tokens.Get(token); still == nil {
		return // the launcher had news that ended r
	}
	switch {
	case suspected:
		r.Hang()
	case r.collective:
		r.Hang()
		r.ch.collectives.Missing(p, e.Live.Reason(p.Rank, err))
	default:
		r.Recall(e.Live.Ended(p.Rank))
		e.Finish(r, e.Live.Reason(p.Rank, err))
	}
}
