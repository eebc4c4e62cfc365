package message

import (
	"math"

	"gompi/internal/core/match"
	"gompi/internal/core/payload"
	"gompi/internal/core/peers"
	"gompi/internal/mem"
	"gompi/transport"
)

// This file keeps messages without a receive. Programs count on sends of short messages without
// one. As long as there is memory for more, an eager message's credit is returned on arrival, and a
// message announced for want of credit is fetched at once. Then senders wait for their receives.

// A Kept message is a message that has arrived, at least in part, without a receive.
type Kept struct {
	node  match.Message[Kept]
	Kind  transport.Kind
	Peer  *peers.Peer // nil: from this rank itself
	Src   int         // rank in the communicator
	Tag   int
	Type  mem.Type
	comm  uint64
	Seq   uint64
	A, B  uint64 // of a collective: its call, as words
	Size  int
	data  []byte // eager payload, from the scratch pool
	ready bool   // all of data is there, or at the sender
	token uint64
	Offer uint64   // RTS: the sender's token
	place uint64   // RTS: place of the payload, if it can be read
	local bool     // RTS of this rank to itself
	taken *Request // the receive that took the message before it was ready

	short   bool     // RTS: its sender has no credit, and the message may be fetched
	kept    bool     // counts as memory that is taken
	Paid    bool     // its credit was returned, or none was taken
	fetch   *Request // that brings its payload
	refused bool     // there was no memory for the message
}

// envelope prepares m's node for matching.
func (m *Kept) envelope() *match.Message[Kept] {
	m.node.Source, m.node.Tag, m.node.Val = m.Src, m.Tag, m
	return &m.node
}

func (e *Engine) newMessage() *Kept {
	if n := len(e.messages); n > 0 {
		m := e.messages[n-1]
		e.messages = e.messages[:n-1]
		return m
	}
	return new(Kept)
}

func (e *Engine) freeMessage(m *Kept) {
	if m.data != nil {
		e.Mover.Scratch.Put(m.data)
	}
	if m.token != 0 {
		e.tokens.Release(m.token)
	}
	if m.refused {
		e.refused--
	}
	if m.kept {
		e.room.Release(m.Peer, m.Size)
	}
	*m = Kept{}
	e.messages = append(e.messages, m)
}

// hold gives m scratch memory for its payload and returns this memory as the window.
func (e *Engine) hold(m *Kept) (mem.Buffer, uint64) {
	if m.Kind == transport.Eager && e.KeepPaid(m) {
		e.room.ReturnCredit(m.Peer, m.Size)
	}
	if m.Size == 0 {
		m.ready = true
		return mem.Buffer{}, 0
	}
	m.data = e.Mover.Scratch.Get(m.Size)
	m.token = e.tokens.Take(nil, m)
	return mem.Bytes(m.data), m.token
}

// KeepPaid counts the memory of a kept message that has taken credit. The result reports whether
// there is memory for more, so that the credit is to be returned at once.
func (e *Engine) KeepPaid(m *Kept) bool {
	m.Paid, m.kept = e.room.Has(m.Peer, m.Size), true
	e.room.Keep(m.Peer, m.Size)
	return m.Paid
}

// keepOffered fetches a short message without a receive, or tells its sender that memory is out.
func (ch *Channel) keepOffered(m *Kept) {
	e := ch.Engine
	if e.room.Has(m.Peer, m.Size) {
		ch.fetch(m)
		return
	}
	if !m.refused {
		m.refused = true
		e.refused++
	}
	if u := &m.Peer.Unexpected; u.Reported != u.Messages {
		u.Reported = u.Messages
		m.Peer.SendHeader(transport.Header{Kind: transport.Credit, Tag: int32(min(u.Messages, math.MaxInt32))})
	}
}

// fetch asks for the payload of a message that is kept.
func (ch *Channel) fetch(m *Kept) {
	e := ch.Engine
	if m.refused {
		m.refused = false
		e.refused--
	}
	e.room.Keep(m.Peer, m.Size)
	m.Kind, m.kept, m.Paid, m.ready, m.data = transport.Eager, true, true, false, e.Mover.Scratch.Get(m.Size)
	r := e.newRequest()
	r.begin(ch, payload.Filling, mem.Bytes(m.data), m.Peer.Rank, m.Tag)
	r.Peer, r.Size, r.keeps, m.fetch = m.Peer, m.Size, m, r
	e.Stamp(r)
	r.Request(m.Offer)
}

// fetched ends a fetch. If its sender has left before, the message is lost.
func (e *Engine) fetched(r *Request) {
	m, ch, err := r.keeps, r.ch, r.err
	r.keeps, m.fetch = nil, nil
	e.FreeRequest(r)
	to := m.taken
	switch {
	case err == nil:
		if m.ready = true; to != nil {
			to.ch.consume(to, m)
		}
	case to != nil:
		e.freeMessage(m)
		e.Finish(to, err)
	case ch.q.Remove(&m.node):
		e.freeMessage(m)
	default: // a probe has taken m: its receive finds out that the sender has left
		m.Kind = transport.RTS
	}
}

// dropFetch gives up the fetch of a message that is dropped.
func (e *Engine) dropFetch(m *Kept) {
	r := m.fetch
	if r == nil {
		return
	}
	r.keeps, m.fetch = nil, nil
	e.abandon(r, r.ch.Broken())
	e.FreeRequest(r)
}

// retryAfter is the memory that has to be released before refused messages are fetched, since the
// search takes a while if many messages are kept. A rank that waits for long fetches them anyway.
const retryAfter = 1 << 20

// fetchRefused fetches messages for which there is memory now.
func (e *Engine) fetchRefused() {
	e.room.Released = 0
	for _, ch := range e.channels {
		for n := range ch.q.Arrived() {
			if n.Val.refused {
				ch.keepOffered(n.Val)
			}
		}
	}
}
