package comm

import "gompi/comm/internal/call"

// A Persistent is an operation with its arguments, made by an ...Init function (MPI_Send_init,
// MPI_Allreduce_init). Start starts it, again and again: each time when it is complete. One
// goroutine at a time uses it.
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

// Start starts the operation. Wait of the Request returns an error, too: ErrActive if the operation
// started before is not complete. All ranks start the collectives of one communicator in the same
// order.
func (p *Persistent) Start() Request {
	if !p.last.Done() {
		r := p.last
		r.h = p.c.failed(ErrActive)
		return r
	}
	if p.op != nil {
		p.last = p.c.collective(p.op)
	} else {
		p.last = p.c.message(p.kind, p.peer, p.tag, p.buf)
	}
	return p.last
}
