package engine

import (
	"math"

	"gompi/comm/internal/call"
	"gompi/comm/internal/match"
	"gompi/internal/mem"
	"gompi/transport"
)

// This file keeps messages for which there is no receive yet. Programs count on short ones being
// sent although nobody receives them. As long as there is memory for more, the credit for an eager
// one is returned when it comes, and one that its sender announces for want of credit is fetched at
// once. Then the sender waits until its messages are received.

// maxKept is the most memory that the unexpected messages of one peer take here.
const maxKept = 64 << 20

// A message is one that has arrived, at least in part, without a receive for it.
type message struct {
	node  match.Message[message]
	kind  transport.Kind
	p     *peer // nil: from this rank itself
	src   int   // rank in the communicator
	tag   int
	typ   mem.Type
	comm  uint64
	seq   uint64
	call  call.Fingerprint
	size  int
	data  []byte // eager payload, from the scratch pool
	ready bool   // all of data is there, or it is at the sender
	token uint64
	offer uint64   // RTS: the sender's token
	place uint64   // RTS: place of the payload, if it can be read there
	local bool     // RTS of this rank to itself
	taken *Request // the receive that took it before it was ready

	short   bool     // RTS: its sender has no credit for it, and may have it fetched
	kept    bool     // it counts as memory that is taken
	paid    bool     // its credit was returned, or it took none
	fetch   *Request // that brings its payload
	refused bool     // there was no memory for it
}

// envelope prepares m's node for matching.
func (m *message) envelope() *match.Message[message] {
	m.node.Source, m.node.Tag, m.node.Val = m.src, m.tag, m
	return &m.node
}

func (e *Engine) newMessage() *message {
	if n := len(e.messages); n > 0 {
		m := e.messages[n-1]
		e.messages = e.messages[:n-1]
		return m
	}
	return new(message)
}

func (e *Engine) freeMessage(m *message) {
	if m.data != nil {
		e.scratch.Put(m.data)
	}
	if m.token != 0 {
		e.slots.release(m.token)
	}
	e.release(m)
	*m = message{}
	e.messages = append(e.messages, m)
}

// hold gives m scratch memory for its payload and returns it as the window.
func (e *Engine) hold(m *message) (mem.Buffer, uint64) {
	if m.kind == transport.Eager && e.keepPaid(m) {
		e.returnCredit(m.p, m.size)
	}
	if m.size == 0 {
		m.ready = true
		return mem.Buffer{}, 0
	}
	m.data = e.scratch.Get(m.size)
	m.token = e.slots.take(nil, m)
	return mem.Bytes(m.data), m.token
}

// keep counts the memory that an unexpected message takes.
func (e *Engine) keep(m *message) {
	m.kept = true
	m.p.unexpected++
	m.p.kept += cost(m.size)
	e.kept += cost(m.size)
}

// keepPaid is keep for a message that has taken credit. It reports whether there is memory for
// more, so that the credit is to be returned at once.
func (e *Engine) keepPaid(m *message) bool {
	m.paid = e.hasRoom(m)
	e.keep(m)
	return m.paid
}

// release undoes keep, if m is kept.
func (e *Engine) release(m *message) {
	if m.refused {
		e.refused--
	}
	if m.kept {
		m.p.unexpected--
		m.p.kept -= cost(m.size)
		e.kept -= cost(m.size)
		e.released += cost(m.size)
	}
}

// hasRoom reports whether there is memory for m, besides that for which its sender has credit.
func (e *Engine) hasRoom(m *message) bool {
	n, most := cost(m.size), e.cfg.Unexpected
	return m.p.kept+n <= maxKept-e.credit && (most == nil || e.kept+n <= most())
}

// keepOffered fetches a short message that no receive has matched, or tells its sender that there
// is no memory for it.
func (ch *Channel) keepOffered(m *message) {
	e := ch.e
	if e.hasRoom(m) {
		ch.fetch(m)
		return
	}
	if !m.refused {
		m.refused = true
		e.refused++
	}
	if m.p.toldKept != m.p.unexpected {
		m.p.toldKept = m.p.unexpected
		e.h = transport.Header{Kind: transport.Credit, Tag: int32(min(m.p.unexpected, math.MaxInt32))}
		e.post(m.p, mem.Buffer{}, 0)
	}
}

// fetch asks for the payload of a message that is kept.
func (ch *Channel) fetch(m *message) {
	e := ch.e
	if m.refused {
		m.refused = false
		e.refused--
	}
	e.keep(m)
	m.kind, m.paid, m.ready, m.data = transport.Eager, true, false, e.scratch.Get(m.size)
	r := e.newRequest()
	r.begin(ch, filling, mem.Bytes(m.data), m.p.rank, m.tag)
	r.size, r.other, r.keeps, m.fetch = m.size, m.offer, m, r
	e.requestData(m.p, r)
}

// fetched ends a fetch. If its sender has left before, the message is lost.
func (e *Engine) fetched(r *Request) {
	m, ch, err := r.keeps, r.ch, r.err
	r.keeps, m.fetch = nil, nil
	e.freeRequest(r)
	to := m.taken
	switch {
	case err == nil:
		if m.ready = true; to != nil {
			to.ch.consume(to, m)
		}
	case to != nil:
		e.freeMessage(m)
		e.finish(to, err)
	case ch.q.Remove(&m.node):
		e.freeMessage(m)
	default: // a probe has taken it: a receive of it finds out that the sender has left
		m.kind = transport.RTS
	}
}

// dropFetch gives up the fetch of a message that is dropped.
func (e *Engine) dropFetch(m *message) {
	r := m.fetch
	if r == nil {
		return
	}
	r.keeps, m.fetch = nil, nil
	e.abandon(r, r.ch.err)
	e.freeRequest(r)
}

// retryAfter is how much memory has to be released before messages that were refused are looked
// for, which takes a while if many are kept. Who waits for long looks for them anyway.
const retryAfter = 1 << 20

// fetchRefused fetches messages for which there is memory now.
func (e *Engine) fetchRefused() {
	e.released = 0
	for _, ch := range e.channels {
		for n := range ch.q.Arrived() {
			if n.Val.refused {
				ch.keepOffered(n.Val)
			}
		}
	}
}
