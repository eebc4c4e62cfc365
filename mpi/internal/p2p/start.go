package p2p

import (
	"gompi/internal/core"
	"gompi/internal/core/lease"
	"gompi/internal/mem"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/dtypes"
)

// isend starts a send. The result is RequestDone if the send is over.
func (m *message) isend(how mode) (*Request, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	if m.peer == abi.ProcNull {
		return RequestDone, m.c.Revoked()
	}
	op, err := m.launch(how)
	if err != nil {
		return nil, err
	}
	if op.Done() {
		_, err := op.Wait(comms.Forever)
		return RequestDone, err
	}
	r := NewRequest(m.c)
	r.Op = op
	return r, nil
}

// launch starts a send whose arguments are right.
func (m *message) launch(how mode) (core.Request, error) {
	to := m.c.RankOf(m.peer)
	switch how {
	case Synchronous:
		return m.c.P2P.Issend(to, m.tag, m.t.Buffer(m.buf, m.n)), nil
	case Buffered:
		return m.buffered()
	}
	return m.c.P2P.Isend(to, m.tag, m.t.Buffer(m.buf, m.n)), nil
}

func Isend(how mode, buf abi.Addr, n int, t *dtypes.Datatype, dest, tag int, c *comms.Comm) (*Request, error) {
	m := message{buf, n, t, dest, tag, c}
	return m.isend(how)
}

// Ibsend has copied the message on return.
func Ibsend(buf abi.Addr, n int, t *dtypes.Datatype, dest, tag int, c *comms.Comm) (*Request, error) {
	return RequestDone, Send(Buffered, buf, n, t, dest, tag, c)
}

func Irecv(buf abi.Addr, n int, t *dtypes.Datatype, source, tag int, c *comms.Comm) (*Request, error) {
	m := message{buf, n, t, source, tag, c}
	if err := m.checkReceive(); err != nil {
		return nil, err
	}
	r := m.newReceive()
	m.receiveInto(r)
	return r, nil
}

// newReceive returns the request of a receive. The face can have short receives.
func (m *message) newReceive() *Request {
	l := m.t.Layout(m.n)
	if o, ok := l.Loop(); ok && m.peer != abi.ProcNull && comms.Lease != nil {
		if place, ok := comms.PlaceFor(m.c, lease.Receive{
			Source: m.peer, Tag: m.tag,
			Bytes: m.n * m.t.Size(), Run: o.Each, Stride: o.Stride, Buf: uintptr(m.buf.Plus(o.Off)),
		}); ok {
			r := requestPool.Get().(*Request)
			r.c, r.active = m.c, true
			r.stay(place, m.peer)
			return r
		}
	}
	return NewRequest(m.c)
}

// receiveInto starts a receive for r.
func (m *message) receiveInto(r *Request) {
	if m.peer == abi.ProcNull {
		r.Finish(abi.OfProcNull)
		return
	}
	r.post(m.t.Buffer(m.buf, m.n), m.peer, m.tag)
}

// post starts a receive.
func (r *Request) post(into mem.Buffer, source, tag int) {
	r.isRecv = true
	r.Op = r.c.P2P.Irecv(r.c.SourceOf(source), tagOf(tag), into)
}

func Imrecv(buf abi.Addr, n int, t *dtypes.Datatype, h *abi.Handle) (*Request, error) {
	t = dtypes.Used(n, t)
	m, err := claim(n, t, h)
	if err != nil {
		return nil, err
	}
	r := NewRequest(m.c) // a matched message is complete soon, so it is received here
	r.Finish(abi.OfNothing)
	r.err = m.receive(buf, n, t, &r.st)
	return r, nil
}

func Isendrecv(sendbuf abi.Addr, sendcount int, sendtype *dtypes.Datatype, dest, sendtag int,
	recvbuf abi.Addr, recvcount int, recvtype *dtypes.Datatype, source, recvtag int, c *comms.Comm) (*Request, error) {
	out := message{sendbuf, sendcount, sendtype, dest, sendtag, c}
	in := message{recvbuf, recvcount, recvtype, source, recvtag, c}
	if err := in.checkExchange(&out); err != nil {
		return nil, err
	}
	return in.exchange(out.t.Buffer(sendbuf, sendcount), &out), nil
}

func IsendrecvReplace(buf abi.Addr, n int, t *dtypes.Datatype, dest, sendtag, source, recvtag int,
	c *comms.Comm) (*Request, error) {
	out := message{buf, n, t, dest, sendtag, c}
	in := message{buf, n, t, source, recvtag, c}
	if err := in.checkExchange(&out); err != nil {
		return nil, err
	}
	return in.exchange(mem.Of(out.t.Packed(buf, n)), &out), nil
}

// exchange starts to receive m, and to send b as the message out.
func (m *message) exchange(b mem.Buffer, out *message) *Request {
	r := NewRequest(m.c)
	m.receiveInto(r) // first, so that its message is expected
	if out.peer == abi.ProcNull {
		return r
	}
	op := m.c.P2P.Isend(m.c.RankOf(out.peer), out.tag, b)
	if !r.over {
		r.Others = append(r.Others, op)
		return r
	}
	r.Op, r.over = op, false // there is nothing to receive: the send is all
	r.Then = func(err error) error {
		r.st = abi.OfProcNull
		return err
	}
	return r
}

// ---- Persistent requests ----

// persistent returns an inactive request of a message.
func (m *message) persistent(check func() error, begin func(r *Request) error) (*Request, error) {
	if err := check(); err != nil {
		return nil, err
	}
	r := NewRequest(m.c)
	r.Persist(begin)
	return r, nil
}

func SendInit(how mode, buf abi.Addr, n int, t *dtypes.Datatype, dest, tag int, c *comms.Comm) (*Request, error) {
	m := &message{buf, n, t, dest, tag, c}
	return m.persistent(m.check, func(r *Request) (err error) {
		if m.peer == abi.ProcNull {
			r.Finish(abi.OfNothing)
			return nil
		}
		r.Op, err = m.launch(how)
		return err
	})
}

func RecvInit(buf abi.Addr, n int, t *dtypes.Datatype, source, tag int, c *comms.Comm) (*Request, error) {
	m := &message{buf, n, t, source, tag, c}
	return m.persistent(m.checkReceive, func(r *Request) error {
		m.receiveInto(r)
		return nil
	})
}
