package comm

import (
	"context"
	"errors"

	"gompi/comm/internal/call"
	"gompi/comm/internal/message"
	"gompi/internal/stats"
)

// A Status describes a received message.
type Status struct {
	Source, Tag int
	Bytes       int  // of the whole message, also when it was truncated
	Type        Type // as it was sent
}

// Count returns the number of elements of the message.
func (s Status) Count() int {
	if s.Type.Size() == 0 {
		return 0
	}
	return s.Bytes / s.Type.Size()
}

// empty is the Status of a null request, fromProcNull that of a receive from ProcNull.
var (
	empty        = Status{Source: AnySource, Tag: AnyTag}
	fromProcNull = Status{Source: ProcNull, Tag: AnyTag}
)

// errProcNull is the outcome of a check of arguments that are right and name ProcNull. So ProcNull
// is looked for only where a rank is refused, and costs other messages nothing.
var errProcNull = errors.New("no process")

func statusOf(s message.Status) Status {
	return Status{Source: s.Source, Tag: s.Tag, Bytes: s.Bytes, Type: s.Type}
}

// Send sends data to rank to, with a tag of 0 or more, and returns when data may be changed again.
// A message up to the eager limit may still be under way then; a longer one has been matched by a
// receive (MPI-4.1 section 3.4, standard mode). What a rank has not received yet takes up to 64 MiB
// of each other rank's short messages there, their records of 256 bytes included, and in all no
// more than its part of a sixteenth of its host's memory and 64 MiB, or 256 KiB of each in a job of
// more than 256 ranks. Where there is no memory for it, a short message waits as a long one does.
func Send[T Scalar](ctx context.Context, c *Comm, to, tag int, data []T) error {
	return c.Send(ctx, to, tag, Of(data))
}

// Ssend is Send, and returns only when the receive has matched (MPI_Ssend).
func Ssend[T Scalar](ctx context.Context, c *Comm, to, tag int, data []T) error {
	return c.Ssend(ctx, to, tag, Of(data))
}

// Recv receives the oldest message from rank from, or AnySource, with tag, or
// AnyTag, into data, which may be longer than the message. If ctx ends before a
// message has matched, only this call fails; if it has ended before the call, none
// matches.
func Recv[T Scalar](ctx context.Context, c *Comm, from, tag int, data []T) (Status, error) {
	return c.Recv(ctx, from, tag, Of(data))
}

// Sendrecv sends and receives at the same time, so that exchanges around a ring
// or between two ranks cannot deadlock (MPI_Sendrecv).
func Sendrecv[T, U Scalar](ctx context.Context, c *Comm, to, sendTag int, send []T, from, recvTag int, recv []U) (Status, error) {
	return c.Sendrecv(ctx, to, sendTag, Of(send), from, recvTag, Of(recv))
}

// Isend starts a Send; data must not change before the Request is done. While no goroutine of this
// rank waits for anything, a message above the eager limit may lie for a millisecond after a
// receive has asked for it; for up to 16 where waits have followed at once before.
func Isend[T Scalar](c *Comm, to, tag int, data []T) Request { return c.Isend(to, tag, Of(data)) }

// Issend starts an Ssend.
func Issend[T Scalar](c *Comm, to, tag int, data []T) Request { return c.Issend(to, tag, Of(data)) }

// Irecv starts a Recv; data must not be used before the Request is done.
func Irecv[T Scalar](c *Comm, from, tag int, data []T) Request {
	return c.Irecv(from, tag, Of(data))
}

// Send is the function Send for a Buffer.
func (c *Comm) Send(ctx context.Context, to, tag int, b Buffer) error {
	return c.send(ctx, "send", to, tag, b, false)
}

// Ssend is the function Ssend for a Buffer.
func (c *Comm) Ssend(ctx context.Context, to, tag int, b Buffer) error {
	return c.send(ctx, "ssend", to, tag, b, true)
}

func (c *Comm) send(ctx context.Context, op string, to, tag int, b Buffer, sync bool) error {
	if err := c.checkSend(to, tag); err != nil {
		return c.notSent(op, err)
	}
	if c.stats.On() {
		var span stats.Span
		c.countSend(&span, to, tag, b, sync)
		defer span.End()
	}
	if staged(b) {
		return c.fault(op, to, c.sendStaged(ctx, to, tag, b, sync))
	}
	if err := c.ch.Send(ctx, to, tag, b, sync); err != nil {
		return c.fault(op, to, err)
	}
	return nil
}

// Recv is the function Recv for a Buffer.
func (c *Comm) Recv(ctx context.Context, from, tag int, b Buffer) (Status, error) {
	if err := c.checkInto(from, tag, b); err != nil {
		return c.notReceived("recv", err)
	}
	if !c.stats.On() {
		return c.recv(ctx, from, tag, b)
	}
	var span stats.Span
	c.stats.Begin(&span, stats.Recv, 0)
	st, err := c.recv(ctx, from, tag, b)
	c.countReceived(&span, st, err)
	return st, err
}

// recv is Recv with arguments that were checked.
func (c *Comm) recv(ctx context.Context, from, tag int, b Buffer) (Status, error) {
	if staged(b) {
		st, err := c.recvStaged(b, func(b Buffer) (message.Status, error) { return c.ch.Recv(ctx, from, tag, b) })
		return statusOf(st), c.fault("recv", from, err)
	}
	st, err := c.ch.Recv(ctx, from, tag, b)
	if err != nil {
		return statusOf(st), c.fault("recv", from, err)
	}
	return statusOf(st), nil
}

// Sendrecv is the function Sendrecv for Buffers.
func (c *Comm) Sendrecv(ctx context.Context, to, sendTag int, send Buffer, from, recvTag int, recv Buffer) (Status, error) {
	out, in := c.checkSend(to, sendTag), c.checkInto(from, recvTag, recv)
	if out != nil || in != nil {
		return c.half(ctx, out, to, sendTag, send, in, from, recvTag, recv)
	}
	if !c.stats.On() {
		return c.sendrecv(ctx, to, sendTag, send, from, recvTag, recv)
	}
	var span stats.Span
	c.countMessage(&span, stats.Sendrecv, to, sendTag, send.Size()) // what it sends is the message of a trace
	st, err := c.sendrecv(ctx, to, sendTag, send, from, recvTag, recv)
	c.stats.Received(&span, st.Bytes)
	span.End()
	return st, err
}

// sendrecv is Sendrecv with arguments that were checked.
func (c *Comm) sendrecv(ctx context.Context, to, sendTag int, send Buffer, from, recvTag int, recv Buffer) (Status, error) {
	if staged(send) || staged(recv) {
		st, err := c.sendrecvStaged(ctx, to, sendTag, send, from, recvTag, recv)
		return statusOf(st), c.fault("sendrecv", from, err)
	}
	st, err := c.ch.Sendrecv(ctx, to, sendTag, send, from, recvTag, recv)
	if err != nil {
		return statusOf(st), c.fault("sendrecv", from, err)
	}
	return statusOf(st), nil
}

// half is the half of a Sendrecv that is left when the other is with ProcNull. out and in are the
// outcomes of the checks.
func (c *Comm) half(ctx context.Context, out error, to, sendTag int, send Buffer, in error, from, recvTag int, recv Buffer) (Status, error) {
	switch {
	case out != nil && out != errProcNull:
		return Status{}, c.fault("sendrecv", -1, out)
	case in == nil:
		return c.Recv(ctx, from, recvTag, recv)
	case in == errProcNull && out == nil:
		return fromProcNull, c.Send(ctx, to, sendTag, send)
	}
	return c.notReceived("sendrecv", in)
}

// Probe waits for a message from rank from, or AnySource, with tag, or AnyTag,
// and describes it without receiving it.
func (c *Comm) Probe(ctx context.Context, from, tag int) (Status, error) {
	_, st, err := c.probe(ctx, "probe", from, tag, true, false)
	return st, err
}

// Iprobe is Probe without waiting: ok reports whether there is such a message.
func (c *Comm) Iprobe(from, tag int) (st Status, ok bool, err error) {
	m, st, err := c.probe(context.Background(), "iprobe", from, tag, false, false)
	return st, found(m, st), err
}

// A Message is one that Mprobe took: no other receive can get it.
type Message struct {
	c *Comm
	m message.Probed
	Status
}

// Mprobe is Probe, and takes the message out of the queue: only the Message's Recv receives it
// (MPI_Mprobe). It is for programs in which several goroutines receive.
func (c *Comm) Mprobe(ctx context.Context, from, tag int) (*Message, error) {
	m, st, err := c.probe(ctx, "mprobe", from, tag, true, true)
	if err != nil {
		return nil, err
	}
	return &Message{c, m, st}, nil
}

// Improbe is Mprobe without waiting: it returns nil if there is no such message.
func (c *Comm) Improbe(from, tag int) (*Message, error) {
	m, st, err := c.probe(context.Background(), "improbe", from, tag, false, true)
	if !found(m, st) {
		return nil, err
	}
	return &Message{c, m, st}, nil
}

// Recv receives the message into b, once; that of ProcNull any number of times.
func (m *Message) Recv(ctx context.Context, b Buffer) (Status, error) {
	if m.Source == ProcNull {
		return fromProcNull, nil
	}
	if err := checkStorable(b); err != nil {
		return Status{}, m.c.fault("mrecv", m.Source, err)
	}
	if !m.c.stats.On() {
		return m.claim(ctx, b)
	}
	var span stats.Span
	m.c.stats.Begin(&span, stats.Mrecv, 0)
	st, err := m.claim(ctx, b)
	m.c.countReceived(&span, st, err)
	return st, err
}

// claim is Recv with arguments that were checked.
func (m *Message) claim(ctx context.Context, b Buffer) (Status, error) {
	st, err := m.c.recvStaged(b, func(b Buffer) (message.Status, error) { return m.m.Claim(ctx, b) })
	return statusOf(st), m.c.fault("mrecv", m.Source, err)
}

func (c *Comm) probe(ctx context.Context, op string, from, tag int, wait, take bool) (message.Probed, Status, error) {
	if err := c.checkRecv(from, tag); err != nil {
		st, err := c.notReceived(op, err)
		return message.Probed{}, st, err
	}
	if c.stats.On() {
		var span stats.Span
		c.stats.Begin(&span, probeOp(wait, take), 0)
		defer span.End()
	}
	m, st, err := c.ch.Probe(ctx, from, tag, wait, take)
	return m, statusOf(st), c.fault(op, from, err)
}

// found reports whether a probe has found a message, which it always does of ProcNull.
func found(m message.Probed, st Status) bool { return m.Found() || st.Source == ProcNull }

// notSent returns the outcome of a send that a check has refused, notReceived that of a receive.
func (c *Comm) notSent(op string, err error) error {
	if err == errProcNull {
		return nil
	}
	return c.fault(op, -1, err)
}

func (c *Comm) notReceived(op string, err error) (Status, error) {
	if err == errProcNull {
		return fromProcNull, nil
	}
	return Status{}, c.fault(op, -1, err)
}

func (c *Comm) checkSend(to, tag int) error {
	if to < 0 || to >= c.Size() {
		return c.noRank("to", to, tag)
	}
	return checkTag(tag)
}

func (c *Comm) checkRecv(from, tag int) error {
	if tag == AnyTag {
		tag = 0
	}
	if (from < 0 || from >= c.Size()) && from != AnySource {
		return c.noRank("from", from, tag)
	}
	return checkTag(tag)
}

// checkInto is checkRecv of a receive into b.
func (c *Comm) checkInto(from, tag int, b Buffer) error {
	if err := c.checkRecv(from, tag); err != nil {
		return err
	}
	return checkStorable(b)
}

func checkStorable(b Buffer) error {
	if b.IsReadOnly() {
		return badArgument("buffer %s", call.ReadOnly)
	}
	return nil
}

// noRank says what is wrong with the arguments of a message with r, which is no rank.
func (c *Comm) noRank(what string, r, tag int) error {
	if r != ProcNull {
		return badArgument("%s rank %d: want 0 to %d, or ProcNull", what, r, c.Size()-1)
	}
	if err := checkTag(tag); err != nil {
		return err
	}
	return errProcNull
}

func checkTag(tag int) error {
	if tag < 0 || tag > 1<<31-1 {
		return badArgument("tag %d: want 0 to %d", tag, 1<<31-1)
	}
	return nil
}
