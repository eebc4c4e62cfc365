package mpi

import (
	"gompi/comm"
	"gompi/comm/internal/mpi/table"
)

// isend starts a send. It returns requestDone if that is over.
func (m *message) isend(how mode) (*Request, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	if m.peer == procNull {
		return requestDone, nil
	}
	op, err := m.launch(how)
	if err != nil {
		return nil, err
	}
	if op.Done() {
		_, err := op.Wait(forever)
		return requestDone, err
	}
	r := newRequest(m.c)
	r.op = op
	return r, nil
}

// launch starts a send whose arguments are right.
func (m *message) launch(how mode) (comm.Request, error) {
	to := m.c.rankOf(m.peer)
	switch how {
	case synchronous:
		return m.c.p2p.Issend(to, m.tag, m.t.outgoing(m.buf, m.n)), nil
	case buffered:
		return attached.send(m)
	}
	return m.c.p2p.Isend(to, m.tag, m.t.outgoing(m.buf, m.n)), nil
}

func Isend(buf Addr, n int, t *Datatype, dest, tag int, c *Comm) (*Request, error) {
	m := message{buf, n, t, dest, tag, c}
	return m.isend(standard)
}

func Issend(buf Addr, n int, t *Datatype, dest, tag int, c *Comm) (*Request, error) {
	m := message{buf, n, t, dest, tag, c}
	return m.isend(synchronous)
}

func Irsend(buf Addr, n int, t *Datatype, dest, tag int, c *Comm) (*Request, error) {
	return Isend(buf, n, t, dest, tag, c)
}

// Ibsend has copied the message when it returns.
func Ibsend(buf Addr, n int, t *Datatype, dest, tag int, c *Comm) (*Request, error) {
	return requestDone, Bsend(buf, n, t, dest, tag, c)
}

func Irecv(buf Addr, n int, t *Datatype, source, tag int, c *Comm) (*Request, error) {
	m := message{buf, n, t, source, tag, c}
	if err := m.checkReceive(); err != nil {
		return nil, err
	}
	r := newRequest(c)
	m.receiveInto(r)
	return r, nil
}

// receiveInto starts a receive for r.
func (m *message) receiveInto(r *Request) {
	if m.peer == procNull {
		r.over, r.st = true, ofProcNull
		return
	}
	r.isRecv, r.into = true, m.t.incoming(m.buf, m.n)
	r.op = m.c.p2p.Irecv(m.c.sourceOf(m.peer), tagOf(m.tag), r.into.Buffer)
}

func Imrecv(buf Addr, n int, t *Datatype, h *Handle) (*Request, error) {
	m, err := claim(n, t, h)
	if err != nil {
		return nil, err
	}
	r := newRequest(m.c) // a matched message is complete soon: to receive it here is as good as later
	r.over, r.st = true, ofNothing
	r.err = m.receive(buf, n, t, &r.st)
	return r, nil
}

func Isendrecv(sendbuf Addr, sendcount int, sendtype *Datatype, dest, sendtag int,
	recvbuf Addr, recvcount int, recvtype *Datatype, source, recvtag int, c *Comm) (*Request, error) {
	return startSendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, c)
}

func IsendrecvReplace(buf Addr, n int, t *Datatype, dest, sendtag, source, recvtag int, c *Comm) (*Request, error) {
	return startReplace(buf, n, t, dest, sendtag, source, recvtag, c)
}

func startSendrecv(sendbuf Addr, sendcount int, sendtype *Datatype, dest, sendtag int,
	recvbuf Addr, recvcount int, recvtype *Datatype, source, recvtag int, c *Comm) (*Request, error) {
	out := message{sendbuf, sendcount, sendtype, dest, sendtag, c}
	in := message{recvbuf, recvcount, recvtype, source, recvtag, c}
	if err := out.check(); err != nil {
		return nil, err
	}
	if err := in.checkReceive(); err != nil {
		return nil, err
	}
	return in.exchange(func() comm.Request {
		return c.p2p.Isend(c.rankOf(dest), sendtag, sendtype.outgoing(sendbuf, sendcount))
	}, dest), nil
}

func startReplace(buf Addr, n int, t *Datatype, dest, sendtag, source, recvtag int, c *Comm) (*Request, error) {
	out := message{buf, n, t, dest, sendtag, c}
	in := message{buf, n, t, source, recvtag, c}
	if err := out.check(); err != nil {
		return nil, err
	}
	if err := in.checkReceive(); err != nil {
		return nil, err
	}
	return in.exchange(func() comm.Request { return c.p2p.Isend(c.rankOf(dest), sendtag, comm.Of(t.packed(buf, n))) }, dest), nil
}

// exchange starts to receive m and to send to dest.
func (m *message) exchange(send func() comm.Request, dest int) *Request {
	r := newRequest(m.c)
	if dest != procNull {
		r.others = append(r.others, send()) // first: it may copy what the receive overwrites
	}
	m.receiveInto(r)
	if r.over && len(r.others) > 0 { // there is nothing to receive: the send is all
		r.over = false
		r.op, r.others = r.others[0], nil
		r.then = func(err error) error {
			r.st = ofProcNull
			return err
		}
	}
	return r
}

// ---- Persistent requests ----

// persistent returns an inactive request of a message.
func (m *message) persistent(check func() error, begin func(r *Request) error) (*Request, error) {
	if err := check(); err != nil {
		return nil, err
	}
	r := newRequest(m.c)
	r.active, r.again = false, begin
	return r, nil
}

func (m *message) persistentSend(how mode) (*Request, error) {
	return m.persistent(m.check, func(r *Request) (err error) {
		if m.peer == procNull {
			r.over, r.st = true, ofNothing
			return nil
		}
		r.op, err = m.launch(how)
		return err
	})
}

func SendInit(buf Addr, n int, t *Datatype, dest, tag int, c *Comm) (*Request, error) {
	return (&message{buf, n, t, dest, tag, c}).persistentSend(standard)
}

func SsendInit(buf Addr, n int, t *Datatype, dest, tag int, c *Comm) (*Request, error) {
	return (&message{buf, n, t, dest, tag, c}).persistentSend(synchronous)
}

func RsendInit(buf Addr, n int, t *Datatype, dest, tag int, c *Comm) (*Request, error) {
	return SendInit(buf, n, t, dest, tag, c)
}

func BsendInit(buf Addr, n int, t *Datatype, dest, tag int, c *Comm) (*Request, error) {
	return (&message{buf, n, t, dest, tag, c}).persistentSend(buffered)
}

func RecvInit(buf Addr, n int, t *Datatype, source, tag int, c *Comm) (*Request, error) {
	m := &message{buf, n, t, source, tag, c}
	return m.persistent(m.checkReceive, func(r *Request) error {
		m.receiveInto(r)
		return nil
	})
}

// noProc is the number of MPI_MESSAGE_NO_PROC.
const noProc = table.MessageNoProc
