package comm

import (
	"errors"

	"gompi/internal/core"
	"gompi/internal/core/call"
)

// ErrActive: Start of a Persistent that is not complete.
var ErrActive = errors.New("request is still active")

// A Persistent is an operation with its arguments, made by an ...Init function (MPI_Send_init,
// MPI_Allreduce_init). Start may start a complete Persistent again. One goroutine at a time uses a
// Persistent.
type Persistent struct {
	begin func() Request
	last  Request
}

// SendInit returns a persistent Isend.
func (c *Comm) SendInit(to, tag int, b Buffer) *Persistent {
	return &Persistent{begin: func() Request { return c.Isend(to, tag, b) }}
}

// SsendInit returns a persistent Issend.
func (c *Comm) SsendInit(to, tag int, b Buffer) *Persistent {
	return &Persistent{begin: func() Request { return c.Issend(to, tag, b) }}
}

// RecvInit returns a persistent Irecv.
func (c *Comm) RecvInit(from, tag int, b Buffer) *Persistent {
	return &Persistent{begin: func() Request { return c.Irecv(from, tag, b) }}
}

func (c *Comm) persistent(o *call.Call) *Persistent {
	return &Persistent{begin: func() Request { return c.start(o) }}
}

// Start starts the operation. Wait of the Request also returns Start's error: ErrActive if the
// previous operation is not complete. All ranks start the collectives of one communicator in the
// same order.
func (p *Persistent) Start() Request {
	if !p.last.Done() {
		return Request(core.Request(p.last).Failing(ErrActive))
	}
	p.last = p.begin()
	return p.last
}
