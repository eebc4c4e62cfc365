package message

import (
	"fmt"

	"gompi/internal/core/liveness"
	"gompi/internal/core/payload"
	"gompi/internal/mem"
	"gompi/transport"
)

// This file pairs receives with messages, in either order, and gets the payload into the buffer.

// expect begins a receive: r gets an unexpected message or is posted.
func (ch *Channel) expect(r *Request, src, tag int, b mem.Buffer) {
	e := ch.Engine
	r.begin(ch, payload.Posted, b, Any, tag)
	if ch.Broken() != nil {
		e.Finish(r, ch.Broken())
		return
	}
	if src != Any {
		r.peer = ch.World(src)
	}
	r.node.Source, r.node.Tag, r.node.Val = src, tag, r
	if m := ch.q.Post(&r.node); m != nil {
		ch.pair(r, m.Val)
		return
	}
	if err := ch.unreachable(src); err != nil {
		ch.q.Cancel(&r.node)
		e.Finish(r, err)
	}
}

// unreachable returns why no message will come from src any more, nil if a message may.
func (ch *Channel) unreachable(src int) error {
	switch {
	case src == Any && ch.Alone():
		return liveness.ErrLeft
	case src == Any || src == ch.Rank():
		return nil
	}
	return ch.Gone(src)
}

// arrived gives a message to the matching receive, or keeps the message as unexpected.
func (ch *Channel) arrived(m *Kept) {
	if n := ch.q.Arrive(m.envelope()); n != nil {
		ch.pair(n.Val, m)
		return
	}
	if m.short {
		ch.keepOffered(m)
	}
	ch.rouseProbes()
}

// matched notes the message that r receives, and refuses a different element type.
func (r *Request) matched(src, tag, size int, t mem.Type) {
	r.Settle()
	r.status = Status{Source: src, Tag: tag, Bytes: size, Type: t}
	r.Size = size
	want := r.Buf.Type()
	switch {
	case t != want && t != mem.U8 && want != mem.U8 && size > 0:
		r.err = fmt.Errorf("%w: %v, want %v", ErrType, t, want)
		r.Buf = r.Buf.Slice(0, 0) // nothing is stored
	case size > r.Buf.Size():
		r.err = fmt.Errorf("%w: %d bytes for a buffer of %d", ErrTruncated, size, r.Buf.Size())
	}
}

// pair gives a kept message to r.
func (ch *Channel) pair(r *Request, m *Kept) {
	e := ch.Engine
	r.matched(m.Src, m.Tag, m.Size, m.Type)
	switch {
	case m.local:
		s, _ := e.tokens.Get(m.Offer)
		if s == nil { // given up, which broke the Channel
			e.freeMessage(m)
			e.Finish(r, ch.Broken())
			return
		}
		e.freeMessage(m)
		e.finishLocal(r, s)
	case m.Kind == transport.RTS:
		ch.ask(r, m)
		e.freeMessage(m)
	default:
		ch.Take(r, m)
	}
}

// finishLocal gives r the message of s, a send of this rank to itself.
func (e *Engine) finishLocal(r, s *Request) {
	n := min(s.Size, r.Buf.Size())
	if r.Buf.OnDevice() || s.Buf.OnDevice() {
		e.Mover.Between(&r.Move, &s.Move, n)
		return
	}
	err := mem.Copy(r.Buf.Raw().Slice(0, n), s.Buf.Raw().Slice(0, n))
	e.Finish(s, err)
	e.Finish(r, err)
}

// consume copies a message that has arrived completely to r.
func (ch *Channel) consume(r *Request, m *Kept) {
	e := ch.Engine
	data := m.data
	var err error
	toDevice := r.ToDevice(m.Size)
	if toDevice {
		m.data = nil
	} else {
		err = r.Store(data)
	}
	if m.Kind == transport.Eager && m.Peer != nil && !m.Paid {
		e.room.ReturnCredit(m.Peer, m.Size)
	}
	e.freeMessage(m)
	if toDevice {
		r.StoreEager(data, len(data))
		return
	}
	e.Finish(r, err)
}

// ask gets the payload of a message by rendezvous: r copies the payload, or asks the sender for it.
// If a probe took the message before the sender left, the sender answers no more.
func (ch *Channel) ask(r *Request, m *Kept) {
	e, p := ch.Engine, m.Peer
	if err := ch.Gone(m.Src); err != nil {
		e.Finish(r, err)
		return
	}
	r.peer, r.Peer = p.Rank, p
	e.Stamp(r)
	r.Fetch(m.Offer, m.place)
}
