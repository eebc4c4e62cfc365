package engine

import (
	"errors"
	"fmt"

	"gompi/comm/internal/liveness"
	"gompi/comm/internal/payload"
	"gompi/comm/internal/peers"
	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// This file handles the frames that transports deliver. All of it runs inside a transport's
// Poll or Close, with the lock held.

var (
	_ transport.Sink      = (*Engine)(nil)
	_ transport.EagerSink = (*Engine)(nil)
)

// Arrive implements transport.Sink.
func (e *Engine) Arrive(from world.Rank, h *transport.Header) (mem.Buffer, uint64) {
	p := e.peers.Peer(from)
	switch h.Kind {
	case transport.Credit:
		e.credited(p, h)
		return mem.Buffer{}, 0
	case transport.CTS:
		e.cleared(p, h)
		return mem.Buffer{}, 0
	case transport.Data:
		return e.data(p, h)
	case transport.Done:
		e.done(p, h.A)
		return mem.Buffer{}, 0
	case transport.Flush:
		e.answerFlush(p, h)
		return mem.Buffer{}, 0
	case transport.Flushed:
		e.Direct.Flushed(p.Rank, h.A)
		return mem.Buffer{}, 0
	case transport.Left:
		e.leftChannel(p, h.Comm)
		return mem.Buffer{}, 0
	case transport.Revoke:
		if h.Len > liveness.MaxReason {
			return mem.Buffer{}, 0
		}
		m := e.newMessage()
		m.Kind, m.Peer, m.comm, m.Size = h.Kind, p, h.Comm, int(h.Len)
		return e.hold(m)
	}
	ch := e.channel(h.Comm)
	if ch == nil && e.past.MayOpen(h.Comm) || ch != nil && ch.err == nil && ch.Member(from) >= 0 {
		return e.deliver(ch, p, h)
	}
	if h.Kind == transport.Eager && h.Len <= peers.Budget { // for a broken or closed communicator
		e.returnCredit(p, int(h.Len))
	}
	e.answerEnd(p, h)
	return mem.Buffer{}, 0
}

// Take implements transport.EagerSink: an eager message goes straight into a receive
// that waits for it.
func (e *Engine) Take(from world.Rank, h *transport.Header, payload []byte) bool {
	if h.Kind != transport.Eager {
		return false
	}
	ch := e.channel(h.Comm)
	if ch == nil || ch.err != nil {
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
	r := n.Val
	r.peer = from
	r.matched(src, int(h.Tag), len(payload), mem.Type(h.Flags))
	e.returnCredit(e.peers.Peer(from), len(payload))
	var err error
	switch {
	case len(payload) == 0 || errors.Is(r.err, ErrType):
	case r.toDevice(len(payload)):
		data := e.scratch.Get(len(payload))
		e.storeEager(r, data, copy(data, payload))
		return true
	default:
		err = r.store(payload)
	}
	e.finish(r, err)
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

// unasked bounds the payload of a frame for which no receive need be posted. Senders that keep
// to their credit never exceed it.
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
		e.live.BreaksProtocol(p.Rank, fmt.Errorf("%w: %v frame of %d bytes", transport.ErrProtocol, h.Kind, h.Len))
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
		m.Type, m.short = mem.Type(h.Flags&^transport.Short), h.Flags&transport.Short != 0 && m.Size <= maxKept/16
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
		ch.leavers.Inquire(m.Src)
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
	m.ready = true // the transport holds no window that it would have to forget
	e.drop(m)
	return mem.Buffer{}, 0
}

// receiver returns the posted receive that the eager message m matches. Without one it queues
// m and returns nil.
func (ch *Channel) receiver(m *Kept) *Request {
	n := ch.q.Arrive(m.envelope())
	if n == nil {
		for _, w := range ch.probes {
			ch.e.rouse(w)
		}
		return nil
	}
	r := n.Val
	r.matched(m.Src, m.Tag, m.Size, m.Type)
	r.peer = m.Peer.Rank
	ch.e.returnCredit(m.Peer, m.Size)
	return r
}

// fill begins to receive n bytes of payload into r.
func (e *Engine) fill(r *Request, n int) (mem.Buffer, uint64) {
	r.stage, r.until = filling, r.got+n
	if r.toDevice(n) && r.copy == nil {
		e.storeEager(r, e.scratch.Get(n), 0)
	}
	if f := r.copy; f != nil {
		return f.Arrives(n), e.stamp(r)
	}
	if r.combine != nil && n > 0 {
		r.combine.chunk = e.scratch.Get(min(n, reduceChunk))
	}
	w := r.window()
	if w.Len() == 0 || errors.Is(r.err, ErrType) {
		e.finish(r, nil)
		return mem.Buffer{}, 0
	}
	return w, e.stamp(r)
}

// Filled implements transport.Sink.
func (e *Engine) Filled(token uint64) mem.Buffer {
	r, m := e.slots.get(token)
	switch {
	case r != nil && r.stage == filling && r.copy != nil:
		return r.copy.Filled()
	case r != nil && r.stage == filling:
		done, err := r.filled()
		if !done {
			return r.window()
		}
		e.putChunk(r)
		e.finish(r, err)
	case m != nil:
		e.slots.release(m.token)
		m.token, m.ready = 0, true
		switch {
		case m.Kind == transport.Revoke:
			e.revokedBy(m)
			e.freeMessage(m)
		case m.taken != nil:
			m.taken.ch.consume(m.taken, m)
		}
	}
	return mem.Buffer{}
}

func (e *Engine) putChunk(r *Request) {
	if r.combine != nil && r.combine.chunk != nil {
		e.scratch.Put(r.combine.chunk)
		r.combine.chunk = nil
	}
}

// cleared handles a CTS frame, which asks for the payload of a message, or for more of it.
func (e *Engine) cleared(p *peers.Peer, h *transport.Header) {
	r, _ := e.slots.get(h.A)
	if r == nil || r.stage != announced || r.peer != p.Rank {
		return // withdrawn in the meantime
	}
	r.other, r.place = h.B, h.Seq
	if r.starved {
		p.Kept.There = 0
	}
	if h.Tag > 0 {
		r.asked = min(r.asked+int(h.Tag)*payload.StagingChunk, r.size)
	} else {
		r.asked = r.size
	}
	e.answer(p, r)
}

// answer sends the part of a payload that a CTS has asked for, or stores the payload at the
// place that the receiver has told. A place counts only for a whole message of which nothing was
// sent: so the next Sent is of that copy, whatever the peer sends.
func (e *Engine) answer(p *peers.Peer, r *Request) {
	switch {
	case r.copy != nil:
		r.copy.Asked(r.asked)
	case !r.buf.IsHost():
		e.load(r)
	case r.place != 0 && p.Direct != nil && r.got == 0 && r.asked == r.size:
		r.stage = storing
		p.Put(r.place, r.buf.Raw(), r.token)
	default:
		e.supply(p, r)
	}
}

// supply sends the part of a payload that a CTS has asked for.
func (e *Engine) supply(p *peers.Peer, r *Request) {
	part := r.buf.Raw().Slice(r.got, r.asked)
	if r.got = r.asked; r.got == r.size {
		r.stage = leaving
	}
	if e.give(p, r, transport.Header{Kind: transport.Data, A: r.other}, part); r.left() {
		e.finish(r, nil)
	}
}

// left reports whether all of a send has left.
func (r *Request) left() bool { return r.stage == leaving && r.due == 0 }

// data handles a Data frame, with payload that a CTS has asked for.
func (e *Engine) data(p *peers.Peer, h *transport.Header) (mem.Buffer, uint64) {
	r, _ := e.slots.get(h.A)
	if r == nil || r.stage != filling || r.peer != p.Rank || h.Len > int64(r.expected()) || h.Len == 0 && r.size > 0 {
		return mem.Buffer{}, 0 // its receive has ended
	}
	return e.fill(r, int(h.Len))
}

// expected returns how many bytes of a receive were asked for and have not come.
func (r *Request) expected() int {
	if f := r.copy; f != nil {
		return f.Expected()
	}
	return r.asked - r.got
}

// hangOn keeps r, whose buffer the transport has released, until the fate of its peer is known.
func (e *Engine) hangOn(r *Request) {
	if r.due--; r.copy != nil {
		r.copy.Returned()
	} else {
		r.stage = queued
	}
}

// Sent implements transport.Sink.
func (e *Engine) Sent(token uint64, err error) {
	r, _ := e.slots.get(token)
	if r != nil && (r.stage == fetching || r.stage == storing) && e.copied(r, err) {
		return
	}
	if r == nil || r.due == 0 && r.stage != fetching && r.stage != storing {
		return
	}
	if err != nil {
		p := e.peers.Peer(r.peer)
		suspected := e.live.Suspected(p.Rank, err)
		if still, _ := e.slots.get(token); still == nil {
			return // the launcher had news that ended r
		}
		if suspected {
			e.hangOn(r)
			return
		}
		err = e.live.Reason(p.Rank, err)
	}
	switch {
	case err != nil && r.collective && r.copy == nil:
		r.stage = queued // the transport has released it
		r.ch.collectives.Missing(e.peers.Peer(r.peer), err)
	default:
		if r.due--; r.copy != nil {
			r.copy.Returned()
		}
		switch {
		case err != nil && r.collective:
			r.ch.collectives.Missing(e.peers.Peer(r.peer), err)
		case err != nil:
			e.recall(e.peers.Peer(r.peer), r)
			e.finish(r, err)
		case r.left() && r.copy == nil:
			e.finish(r, nil)
		}
	}
}
