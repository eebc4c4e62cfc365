package p2p

import (
	"gompi/internal/core"
	"gompi/internal/mem"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/dtypes"
	"gompi/mpi/internal/errs"
)

// A mode is how a send completes.
type mode uint8

const (
	Standard    mode = iota // ready sends, too
	Synchronous             // when matched
	Buffered                // at once: the message is copied
)

// A message is the arguments of a send or a receive.
type message struct {
	buf  abi.Addr
	n    int
	t    *dtypes.Datatype
	peer int
	tag  int
	c    *comms.Comm
}

// check returns an error if the arguments of a send are not valid.
func (m *message) check() error {
	if err := m.checkData(); err != nil {
		return err
	}
	if m.tag < 0 || m.tag > abi.TagUB {
		return errs.New(errs.Tag, "the tag is not from 0 to %d", abi.TagUB)
	}
	if m.peer != abi.ProcNull && (m.peer < 0 || m.peer >= m.c.Peers()) {
		return errs.New(errs.Rank, "rank %d is not from 0 to %d", m.peer, m.c.Peers()-1)
	}
	return nil
}

// checkReceive returns an error if the arguments of a receive are not valid.
func (m *message) checkReceive() error {
	if err := m.checkData(); err != nil {
		return err
	}
	return m.c.CheckSource(m.peer, m.tag)
}

// checkData checks the communicator, and the data to send or receive.
func (m *message) checkData() error {
	if m.c == nil {
		return errs.New(errs.Comm, "the communicator is not valid")
	}
	m.t = dtypes.Used(m.n, m.t)
	return dtypes.Check(m.n, m.t)
}

// send sends m, and returns when its buffer may be used again.
func (m *message) send(how mode) error {
	if err := m.check(); err != nil {
		return err
	}
	if m.peer == abi.ProcNull {
		return m.c.Revoked()
	}
	if how == Buffered {
		_, err := m.buffered()
		return err
	}
	to, b := m.c.RankOf(m.peer), m.t.Buffer(m.buf, m.n)
	if how == Synchronous {
		return m.c.P2P.Ssend(comms.Forever, to, m.tag, b)
	}
	return m.c.P2P.Send(comms.Forever, to, m.tag, b)
}

func Send(how mode, buf abi.Addr, n int, t *dtypes.Datatype, dest, tag int, c *comms.Comm) error {
	m := message{buf, n, t, dest, tag, c}
	return m.send(how)
}

func Recv(buf abi.Addr, n int, t *dtypes.Datatype, source, tag int, c *comms.Comm, st *abi.Status) error {
	m := message{buf, n, t, source, tag, c}
	if err := m.checkReceive(); err != nil {
		return err
	}
	return m.receive(st)
}

// receive receives m, whose arguments are right.
func (m *message) receive(st *abi.Status) error {
	if m.peer == abi.ProcNull {
		st.Set(abi.OfProcNull)
		return nil
	}
	got, err := m.c.P2P.Recv(comms.Forever, m.c.SourceOf(m.peer), tagOf(m.tag), m.t.Buffer(m.buf, m.n))
	st.Set(m.c.StatusOf(got))
	return err
}

func Sendrecv(sendbuf abi.Addr, sendcount int, sendtype *dtypes.Datatype, dest, sendtag int,
	recvbuf abi.Addr, recvcount int, recvtype *dtypes.Datatype, source, recvtag int, c *comms.Comm,
	st *abi.Status) error {
	out := message{sendbuf, sendcount, sendtype, dest, sendtag, c}
	in := message{recvbuf, recvcount, recvtype, source, recvtag, c}
	if err := in.checkExchange(&out); err != nil {
		return err
	}
	return in.sendrecv(out.t.Buffer(sendbuf, sendcount), &out, st)
}

func SendrecvReplace(buf abi.Addr, n int, t *dtypes.Datatype, dest, sendtag, source, recvtag int, c *comms.Comm,
	st *abi.Status) error {
	out := message{buf, n, t, dest, sendtag, c}
	in := message{buf, n, t, source, recvtag, c}
	if err := in.checkExchange(&out); err != nil {
		return err
	}
	return in.sendrecv(mem.Of(out.t.Packed(buf, n)), &out, st)
}

// checkExchange returns an error if the arguments of a call that sends out and receives m are not
// valid.
func (m *message) checkExchange(out *message) error {
	if err := out.check(); err != nil {
		return err
	}
	return m.checkReceive()
}

// sendrecv sends b as the message out, and receives m at the same time.
func (m *message) sendrecv(b mem.Buffer, out *message, st *abi.Status) error {
	if out.peer == abi.ProcNull {
		return m.receive(st)
	}
	c, to := m.c, m.c.RankOf(out.peer)
	if m.peer == abi.ProcNull {
		st.Set(abi.OfProcNull)
		return c.P2P.Send(comms.Forever, to, out.tag, b)
	}
	got, err := c.P2P.Sendrecv(comms.Forever, to, out.tag, b, c.SourceOf(m.peer), tagOf(m.tag), m.t.Buffer(m.buf, m.n))
	st.Set(c.StatusOf(got))
	return err
}

func Probe(source, tag int, c *comms.Comm, st *abi.Status) error {
	if err := c.CheckSource(source, tag); err != nil {
		return err
	}
	if source == abi.ProcNull {
		st.Set(abi.OfProcNull)
		return nil
	}
	got, err := c.P2P.Probe(comms.Forever, c.SourceOf(source), tagOf(tag))
	st.Set(c.StatusOf(got))
	return err
}

func Iprobe(source, tag int, c *comms.Comm, st *abi.Status) (bool, error) {
	if err := c.CheckSource(source, tag); err != nil {
		return false, err
	}
	if source == abi.ProcNull {
		st.Set(abi.OfProcNull)
		return true, nil
	}
	got, ok, err := c.P2P.Iprobe(c.SourceOf(source), tagOf(tag))
	if ok {
		st.Set(c.StatusOf(got))
	}
	return ok, err
}

// A Message is a message that Mprobe took.
type Message struct {
	Handle abi.Handle
	m      *core.Message // nil: of MPI_PROC_NULL
	c      *comms.Comm
}

var Messages = abi.NewRegistry(abi.MessageNull, func(m *Message) abi.Handle { return m.Handle })

var messageNoProc = &Message{Handle: abi.MessageNoProc}

func init() { Messages.Set(messageNoProc.Handle, messageNoProc) }

// taken gives m a handle.
func taken(m core.Message, c *comms.Comm, st *abi.Status) *Message {
	t := &Message{m: &m, c: c}
	c.Keep()
	t.Handle = Messages.Add(t)
	st.Set(c.StatusOf(m.Status))
	return t
}

func Mprobe(source, tag int, c *comms.Comm, st *abi.Status) (*Message, error) {
	if err := c.CheckSource(source, tag); err != nil {
		return nil, err
	}
	if source == abi.ProcNull {
		st.Set(abi.OfProcNull)
		return messageNoProc, nil
	}
	m, err := c.P2P.Mprobe(comms.Forever, c.SourceOf(source), tagOf(tag))
	if err != nil {
		return nil, err
	}
	return taken(m, c, st), nil
}

func Improbe(source, tag int, c *comms.Comm, st *abi.Status) (bool, *Message, error) {
	if err := c.CheckSource(source, tag); err != nil {
		return false, nil, err
	}
	if source == abi.ProcNull {
		st.Set(abi.OfProcNull)
		return true, messageNoProc, nil
	}
	m, ok, err := c.P2P.Improbe(c.SourceOf(source), tagOf(tag))
	if err != nil || !ok {
		return false, nil, err
	}
	return true, taken(m, c, st), nil
}

func Mrecv(buf abi.Addr, n int, t *dtypes.Datatype, h *abi.Handle, st *abi.Status) error {
	t = dtypes.Used(n, t)
	m, err := claim(n, t, h)
	if err != nil {
		return err
	}
	return m.receive(buf, n, t, st)
}

// claim takes the message behind h, which becomes null.
func claim(n int, t *dtypes.Datatype, h *abi.Handle) (*Message, error) {
	if err := dtypes.Check(n, t); err != nil {
		return nil, err
	}
	m := Messages.Find(*h)
	if m == nil {
		return nil, errs.New(errs.Request, "the message is not valid")
	}
	if m.m != nil {
		Messages.Remove(*h)
	}
	*h = Messages.Null
	return m, nil
}

func (m *Message) receive(buf abi.Addr, n int, t *dtypes.Datatype, st *abi.Status) error {
	if m.m == nil {
		st.Set(abi.OfProcNull)
		return nil
	}
	got, err := m.m.Recv(comms.Forever, t.Buffer(buf, n))
	st.Set(m.c.StatusOf(got))
	m.c.Let()
	return err
}

// tagOf returns core's tag of a receive.
func tagOf(tag int) int {
	if tag == abi.AnyTag {
		return core.AnyTag
	}
	return tag
}
