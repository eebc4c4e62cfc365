package comm

import (
	"context"

	"gompi/internal/core"
)

// A Status describes a received message.
type Status struct {
	Source, Tag int
	Bytes       int  // of the whole message, even if truncated
	Type        Type // as sent
}

// Count returns the number of elements of the message.
func (s Status) Count() int { return core.Status(s).Count() }

// Send sends data to rank to, with a tag of 0 or more, and returns when data may be changed again.
// A message up to the eager limit may still be under way then; a longer one has been matched by a
// receive (MPI-4.1 section 3.4, standard mode). A rank's unreceived short messages take up to 64
// MiB there for each other rank, their records of 256 bytes included. In all they take no more than
// the rank's part of a sixteenth of its host's memory and 64 MiB, or 256 KiB for each other rank in
// a job of more than 256 ranks. Beyond that memory, a short message waits as a long one does. If
// ctx ends before a receive has matched, the message is withdrawn.
func Send[T Scalar](ctx context.Context, c *Comm, to, tag int, data []T) error {
	return c.Send(ctx, to, tag, Of(data))
}

// Ssend is Send, and returns only when the receive has matched (MPI_Ssend).
func Ssend[T Scalar](ctx context.Context, c *Comm, to, tag int, data []T) error {
	return c.Ssend(ctx, to, tag, Of(data))
}

// Recv receives the oldest message from rank from, or AnySource, with tag, or AnyTag, into data
// (MPI_Recv). It blocks until the message is in data, which may be longer than the message. If data
// is shorter, it gets the message's beginning, and the error is ErrTruncated. Another element type
// gives ErrType. If ctx ends before a message has matched, only this call fails.
func Recv[T Scalar](ctx context.Context, c *Comm, from, tag int, data []T) (Status, error) {
	return c.Recv(ctx, from, tag, Of(data))
}

// Sendrecv sends and receives at the same time, so that exchanges around a ring or between two
// ranks cannot deadlock (MPI_Sendrecv).
func Sendrecv[T, U Scalar](ctx context.Context, c *Comm, to, sendTag int, send []T, from, recvTag int,
	recv []U) (Status, error) {
	return c.Sendrecv(ctx, to, sendTag, Of(send), from, recvTag, Of(recv))
}

// Isend starts a Send; data must not change before the Request is done. While no goroutine of this
// rank waits, a message above the eager limit may lie for a millisecond after a receive has asked
// for it; for up to 16 ms if earlier waits have followed at once.
func Isend[T Scalar](c *Comm, to, tag int, data []T) Request { return c.Isend(to, tag, Of(data)) }

// Issend starts an Ssend.
func Issend[T Scalar](c *Comm, to, tag int, data []T) Request { return c.Issend(to, tag, Of(data)) }

// Irecv starts a Recv; data must not be used before the Request is done.
func Irecv[T Scalar](c *Comm, from, tag int, data []T) Request {
	return c.Irecv(from, tag, Of(data))
}

// Send is the function Send for a Buffer.
func (c *Comm) Send(ctx context.Context, to, tag int, b Buffer) error {
	return c.core().Send(ctx, to, tag, b)
}

// Ssend is the function Ssend for a Buffer.
func (c *Comm) Ssend(ctx context.Context, to, tag int, b Buffer) error {
	return c.core().Ssend(ctx, to, tag, b)
}

// Recv is the function Recv for a Buffer.
func (c *Comm) Recv(ctx context.Context, from, tag int, b Buffer) (Status, error) {
	st, err := c.core().Recv(ctx, from, tag, b)
	return Status(st), err
}

// Sendrecv is the function Sendrecv for Buffers.
func (c *Comm) Sendrecv(ctx context.Context, to, sendTag int, send Buffer, from, recvTag int,
	recv Buffer) (Status, error) {
	st, err := c.core().Sendrecv(ctx, to, sendTag, send, from, recvTag, recv)
	return Status(st), err
}

// Isend is the function Isend for a Buffer.
func (c *Comm) Isend(to, tag int, b Buffer) Request {
	r := c.core().Isend(to, tag, b)
	r.Pend(b)
	return Request(r)
}

// Issend is the function Issend for a Buffer.
func (c *Comm) Issend(to, tag int, b Buffer) Request {
	r := c.core().Issend(to, tag, b)
	r.Pend(b)
	return Request(r)
}

// Irecv is the function Irecv for a Buffer.
func (c *Comm) Irecv(from, tag int, b Buffer) Request {
	return Request(c.core().Irecv(from, tag, b))
}

// Probe waits for a message from rank from, or AnySource, with tag, or AnyTag, and describes the
// message without receiving it.
func (c *Comm) Probe(ctx context.Context, from, tag int) (Status, error) {
	st, err := c.core().Probe(ctx, from, tag)
	return Status(st), err
}

// Iprobe is Probe without waiting: ok reports whether such a message is there.
func (c *Comm) Iprobe(from, tag int) (st Status, ok bool, err error) {
	found, ok, err := c.core().Iprobe(from, tag)
	return Status(found), ok, err
}

// A Message is a message taken by Mprobe: no other receive can get it.
type Message struct {
	in core.Message
	Status
}

// Mprobe is Probe, and takes the message out of the queue: only the Message's Recv receives it
// (MPI_Mprobe). Mprobe serves programs in which several goroutines receive.
func (c *Comm) Mprobe(ctx context.Context, from, tag int) (*Message, error) {
	m, err := c.core().Mprobe(ctx, from, tag)
	if err != nil {
		return nil, err
	}
	return &Message{m, Status(m.Status)}, nil
}

// Improbe is Mprobe without waiting: it returns nil if there is no such message.
func (c *Comm) Improbe(from, tag int) (*Message, error) {
	m, ok, err := c.core().Improbe(from, tag)
	if !ok {
		return nil, err
	}
	return &Message{m, Status(m.Status)}, nil
}

// Recv receives the message into b, once; a message of ProcNull any number of times.
func (m *Message) Recv(ctx context.Context, b Buffer) (Status, error) {
	st, err := m.in.Recv(ctx, b)
	return Status(st), err
}
