package comm

import "gompi/comm/internal/call"

// A Persistent is an operation with its arguments, made by an ...Init function. It
// does nothing before Start, and can be started again when it is done, at no cost but
// that of the operation. It is for one goroutine at a time.
type Persistent struct {
	c    *Comm
	last Request

	kind requestKind // of a message
	peer int
	tag  int
	buf  Buffer

	op *call.Call // of a collective
}

// SendInit returns a persistent Isend.
func (c *Comm) SendInit(to, tag int, b Buffer) *Persistent {
	return &Persistent{c: c, kind: sendRequest, peer: to, tag: tag, buf: b}
}

// SsendInit returns a persistent Issend.
func (c *Comm) SsendInit(to, tag int, b Buffer) *Persistent {
	return &Persistent{c: c, kind: ssendRequest, peer: to, tag: tag, buf: b}
}

// RecvInit returns a persistent Irecv.
func (c *Comm) RecvInit(from, tag int, b Buffer) *Persistent {
	return &Persistent{c: c, kind: recvRequest, peer: from, tag: tag, buf: b}
}

func (c *Comm) persistent(o *call.Call) *Persistent { return &Persistent{c: c, op: o} }

// Start starts the operation. An error is kept for Wait of the Request: ErrActive if
// the one started last is not done. All ranks start collectives of one communicator
// in the same order.
func (p *Persistent) Start() Request { return p.start(nil) }

// StartOn is Start in the order of q, for any message or collective: as SendOnStream,
// RecvOnStream or AllreduceOnStream.
func (p *Persistent) StartOn(q Queue) Request { return p.start(q) }

// start starts the operation, in the order of q if that is not nil.
func (p *Persistent) start(q Queue) Request {
	if !p.last.Done() {
		r := p.last
		r.h = p.c.failed(ErrActive)
		return r
	}
	switch {
	case p.op != nil:
		p.last = p.c.collectiveBehind(p.op, q)
	case q != nil:
		p.last = p.c.messageBehind(q, p.kind, p.peer, p.tag, p.buf)
	default:
		p.last = p.c.message(p.kind, p.peer, p.tag, p.buf)
	}
	return p.last
}
