package core

import (
	"context"
	"errors"

	"gompi/internal/core/call"
	"gompi/internal/core/message"
	"gompi/internal/mem"
	"gompi/internal/stats"
)

// Wildcards of receives and probes.
const (
	AnySource = message.Any
	AnyTag    = message.Any
)

// ProcNull is a rank that is no process (MPI_PROC_NULL): its messages are complete at once.
const ProcNull = -2

// A Status describes a received message.
type Status = message.Status

// empty is the Status of a null request, fromProcNull the Status of a receive from ProcNull.
var (
	empty        = Status{Source: message.Any, Tag: message.Any}
	fromProcNull = Status{Source: ProcNull, Tag: message.Any}
)

// errProcNull is the result of a check of valid arguments that name ProcNull. A rank is compared
// with ProcNull only after the range check has refused it, so other messages have no cost.
var errProcNull = errors.New("no process")

// Send sends b to rank to, in MPI's standard mode.
func (c *Comm) Send(ctx context.Context, to, tag int, b mem.Buffer) error {
	return c.send(ctx, "send", to, tag, b, false)
}

// Ssend is Send in synchronous mode, which returns after the receive has matched.
func (c *Comm) Ssend(ctx context.Context, to, tag int, b mem.Buffer) error {
	return c.send(ctx, "ssend", to, tag, b, true)
}

func (c *Comm) send(ctx context.Context, op string, to, tag int, b mem.Buffer, sync bool) error {
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

// Recv receives into b the oldest message from rank from with tag; either may be message.Any.
func (c *Comm) Recv(ctx context.Context, from, tag int, b mem.Buffer) (Status, error) {
	if err := c.checkInto(from, tag, b); err != nil {
		return c.notReceived("recv", err)
	}
	if !c.stats.On() {
		return c.recv(ctx, from, tag, b)
	}
	var span stats.Span
	c.stats.Begin(&span, stats.Recv, 0, nil)
	st, err := c.recv(ctx, from, tag, b)
	c.countReceived(&span, st, err)
	return st, err
}

// recv is Recv with arguments that were checked.
func (c *Comm) recv(ctx context.Context, from, tag int, b mem.Buffer) (Status, error) {
	if staged(b) {
		st, err := c.recvStaged(b, func(b mem.Buffer) (message.Status, error) { return c.ch.Recv(ctx, from, tag, b) })
		return st, c.fault("recv", from, err)
	}
	st, err := c.ch.Recv(ctx, from, tag, b)
	if err != nil {
		return st, c.fault("recv", from, err)
	}
	return st, nil
}

// Sendrecv sends and receives at the same time.
func (c *Comm) Sendrecv(
	ctx context.Context, to, sendTag int, send mem.Buffer, from, recvTag int, recv mem.Buffer,
) (Status, error) {
	out, in := c.checkSend(to, sendTag), c.checkInto(from, recvTag, recv)
	if out != nil || in != nil {
		return c.half(ctx, out, to, sendTag, send, in, from, recvTag, recv)
	}
	if !c.stats.On() {
		return c.sendrecv(ctx, to, sendTag, send, from, recvTag, recv)
	}
	var span stats.Span
	c.countMessage(&span, stats.Sendrecv, to, sendTag, send.Size()) // the sent message is the message of a trace
	st, err := c.sendrecv(ctx, to, sendTag, send, from, recvTag, recv)
	c.stats.Received(&span, st.Bytes)
	span.End()
	return st, err
}

// sendrecv is Sendrecv with arguments that were checked.
func (c *Comm) sendrecv(
	ctx context.Context, to, sendTag int, send mem.Buffer, from, recvTag int, recv mem.Buffer,
) (Status, error) {
	if staged(send) || staged(recv) {
		st, err := c.sendrecvStaged(ctx, to, sendTag, send, from, recvTag, recv)
		return st, c.fault("sendrecv", from, err)
	}
	st, err := c.ch.Sendrecv(ctx, to, sendTag, send, from, recvTag, recv)
	if err != nil {
		return st, c.fault("sendrecv", from, err)
	}
	return st, nil
}

// half does one half of a Sendrecv whose other half is with ProcNull. out and in are the outcomes
// of the checks.
func (c *Comm) half(
	ctx context.Context, out error, to, sendTag int, send mem.Buffer, in error, from, recvTag int, recv mem.Buffer,
) (Status, error) {
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

// Probe waits for a message and describes the message without receiving it.
func (c *Comm) Probe(ctx context.Context, from, tag int) (Status, error) {
	_, st, err := c.probe(ctx, "probe", from, tag, true, false)
	return st, err
}

// Iprobe is Probe without waiting: ok reports whether there is such a message.
func (c *Comm) Iprobe(from, tag int) (st Status, ok bool, err error) {
	m, st, err := c.probe(context.Background(), "iprobe", from, tag, false, false)
	return st, found(m, st), err
}

// A Message is a message that Mprobe took: no other receive can get it.
type Message struct {
	c *Comm
	m message.Probed
	Status
}

// Mprobe is Probe, and takes the message out of the queue.
func (c *Comm) Mprobe(ctx context.Context, from, tag int) (Message, error) {
	m, st, err := c.probe(ctx, "mprobe", from, tag, true, true)
	if err != nil {
		return Message{}, err
	}
	return Message{c, m, st}, nil
}

// Improbe is Mprobe without waiting: ok reports whether there is such a message.
func (c *Comm) Improbe(from, tag int) (_ Message, ok bool, err error) {
	m, st, err := c.probe(context.Background(), "improbe", from, tag, false, true)
	return Message{c, m, st}, found(m, st), err
}

// Recv receives the message into b, once; a message of ProcNull any number of times.
func (m *Message) Recv(ctx context.Context, b mem.Buffer) (Status, error) {
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
	m.c.stats.Begin(&span, stats.Mrecv, 0, nil)
	st, err := m.claim(ctx, b)
	m.c.countReceived(&span, st, err)
	return st, err
}

// claim is Recv with arguments that were checked.
func (m *Message) claim(ctx context.Context, b mem.Buffer) (Status, error) {
	st, err := m.c.recvStaged(b, func(b mem.Buffer) (message.Status, error) { return m.m.Claim(ctx, b) })
	return st, m.c.fault("mrecv", m.Source, err)
}

func (c *Comm) probe(ctx context.Context, op string, from, tag int, wait, take bool) (message.Probed, Status, error) {
	if err := c.checkRecv(from, tag); err != nil {
		st, err := c.notReceived(op, err)
		return message.Probed{}, st, err
	}
	if c.stats.On() {
		var span stats.Span
		c.stats.Begin(&span, probeOp(wait, take), 0, nil)
		defer span.End()
	}
	m, st, err := c.ch.Probe(ctx, from, tag, wait, take)
	return m, st, c.fault(op, from, err)
}

// found reports whether a probe has found a message, always true for ProcNull.
func found(m message.Probed, st Status) bool { return m.Found() || st.Source == ProcNull }

// notSent returns the outcome of a send that a check has refused, notReceived of a receive.
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
	if tag == message.Any {
		tag = 0
	}
	if (from < 0 || from >= c.Size()) && from != message.Any {
		return c.noRank("from", from, tag)
	}
	return checkTag(tag)
}

// checkInto is checkRecv of a receive into b.
func (c *Comm) checkInto(from, tag int, b mem.Buffer) error {
	if err := c.checkRecv(from, tag); err != nil {
		return err
	}
	return checkStorable(b)
}

func checkStorable(b mem.Buffer) error {
	if b.IsReadOnly() {
		return BadArgument("buffer %s", call.ReadOnly)
	}
	return nil
}

// noRank returns the error, if any, of the arguments of a message with r, which is no rank.
func (c *Comm) noRank(what string, r, tag int) error {
	if r != ProcNull {
		return BadArgument("%s rank %d: want 0 to %d, or ProcNull", what, r, c.Size()-1)
	}
	if err := checkTag(tag); err != nil {
		return err
	}
	return errProcNull
}

func checkTag(tag int) error {
	if tag < 0 || tag > 1<<31-1 {
		return BadArgument("tag %d: want 0 to %d", tag, 1<<31-1)
	}
	return nil
}
