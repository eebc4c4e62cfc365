package mpi

import (
	"context"

	"gompi/comm"
)

// forever is the context of blocking calls: MPI's have no deadline. The death of a peer, or its
// leaving, ends them.
var forever = context.Background()

// A mode is how a send completes.
type mode uint8

const (
	standard    mode = iota // ready sends, too
	synchronous             // when it was matched
	buffered                // at once: the message is copied
)

// A message is the arguments of a send or a receive.
type message struct {
	buf  Addr
	n    int
	t    *Datatype
	peer int
	tag  int
	c    *Comm
}

// check returns what is wrong with the arguments of a send.
func (m *message) check() error {
	if err := m.checkData(); err != nil {
		return err
	}
	if m.tag < 0 || m.tag > tagUB {
		return wrong(errTag, "the tag is not from 0 to %d", tagUB)
	}
	if m.peer != procNull && (m.peer < 0 || m.peer >= m.c.peers()) {
		return wrong(errRank, "rank %d is not from 0 to %d", m.peer, m.c.peers()-1)
	}
	return nil
}

// checkReceive returns what is wrong with the arguments of a receive.
func (m *message) checkReceive() error {
	if err := m.checkData(); err != nil {
		return err
	}
	return m.c.checkSource(m.peer, m.tag)
}

func (m *message) checkData() error {
	if m.c == nil {
		return wrong(errComm, "the communicator is not valid")
	}
	return checkData(m.n, m.t)
}

// checkData returns what is wrong with a count and a datatype.
func checkData(n int, t *Datatype) error {
	switch {
	case n < 0:
		return wrong(errCount, "the count is %d: want 0 or more", n)
	case t == nil:
		return wrong(errType, "the datatype is not valid")
	case !t.committed:
		return wrong(errType, "the datatype is not committed")
	}
	return nil
}

func (c *Comm) checkSource(source, tag int) error {
	if c == nil {
		return wrong(errComm, "the communicator is not valid")
	}
	if tag != anyTag && (tag < 0 || tag > tagUB) {
		return wrong(errTag, "the tag is not from 0 to %d, and not MPI_ANY_TAG", tagUB)
	}
	if source != anySource && source != procNull && (source < 0 || source >= c.peers()) {
		return wrong(errRank, "rank %d is not from 0 to %d, and not MPI_ANY_SOURCE", source, c.peers()-1)
	}
	return nil
}

// send sends m, and returns when its buffer may be used again.
func (m *message) send(how mode) error {
	if err := m.check(); err != nil || m.peer == procNull {
		return err
	}
	if how == buffered {
		_, err := attached.send(m)
		return err
	}
	to, b := m.c.rankOf(m.peer), m.t.outgoing(m.buf, m.n)
	if how == synchronous {
		return m.c.p2p.Ssend(forever, to, m.tag, b)
	}
	return m.c.p2p.Send(forever, to, m.tag, b)
}

func Send(buf Addr, n int, t *Datatype, dest, tag int, c *Comm) error {
	m := message{buf, n, t, dest, tag, c}
	return m.send(standard)
}

func Ssend(buf Addr, n int, t *Datatype, dest, tag int, c *Comm) error {
	m := message{buf, n, t, dest, tag, c}
	return m.send(synchronous)
}

func Rsend(buf Addr, n int, t *Datatype, dest, tag int, c *Comm) error {
	return Send(buf, n, t, dest, tag, c)
}

func Bsend(buf Addr, n int, t *Datatype, dest, tag int, c *Comm) error {
	m := message{buf, n, t, dest, tag, c}
	return m.send(buffered)
}

func Recv(buf Addr, n int, t *Datatype, source, tag int, c *Comm, st *Status) error {
	m := message{buf, n, t, source, tag, c}
	if err := m.checkReceive(); err != nil {
		return err
	}
	if source == procNull {
		st.set(ofProcNull)
		return nil
	}
	b := t.incoming(buf, n)
	got, err := c.p2p.Recv(forever, c.sourceOf(source), tagOf(tag), b.Buffer)
	b.arrived(got.Bytes)
	st.set(c.statusOf(got))
	return err
}

func Sendrecv(sendbuf Addr, sendcount int, sendtype *Datatype, dest, sendtag int,
	recvbuf Addr, recvcount int, recvtype *Datatype, source, recvtag int, c *Comm, st *Status) error {
	r, err := startSendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, c)
	if err != nil {
		return err
	}
	return r.wait(st)
}

func SendrecvReplace(buf Addr, n int, t *Datatype, dest, sendtag, source, recvtag int, c *Comm, st *Status) error {
	r, err := startReplace(buf, n, t, dest, sendtag, source, recvtag, c)
	if err != nil {
		return err
	}
	return r.wait(st)
}

func Probe(source, tag int, c *Comm, st *Status) error {
	if err := c.checkSource(source, tag); err != nil {
		return err
	}
	if source == procNull {
		st.set(ofProcNull)
		return nil
	}
	got, err := c.p2p.Probe(forever, c.sourceOf(source), tagOf(tag))
	st.set(c.statusOf(got))
	return err
}

func Iprobe(source, tag int, c *Comm, st *Status) (bool, error) {
	if err := c.checkSource(source, tag); err != nil {
		return false, err
	}
	if source == procNull {
		st.set(ofProcNull)
		return true, nil
	}
	got, ok, err := c.p2p.Iprobe(c.sourceOf(source), tagOf(tag))
	if ok {
		st.set(c.statusOf(got))
	}
	return ok, err
}

// A Message is one that Mprobe took.
type Message struct {
	handle Handle
	m      *comm.Message // nil: of MPI_PROC_NULL
	c      *Comm
}

var messageNoProc = &Message{handle: noProc}

// taken gives m a handle.
func taken(m *comm.Message, c *Comm, st *Status) *Message {
	t := &Message{m: m, c: c}
	t.handle = messages.add(t)
	st.set(c.statusOf(m.Status))
	return t
}

func Mprobe(source, tag int, c *Comm, st *Status) (*Message, error) {
	if err := c.checkSource(source, tag); err != nil {
		return nil, err
	}
	if source == procNull {
		st.set(ofProcNull)
		return messageNoProc, nil
	}
	m, err := c.p2p.Mprobe(forever, c.sourceOf(source), tagOf(tag))
	if err != nil {
		return nil, err
	}
	return taken(m, c, st), nil
}

func Improbe(source, tag int, c *Comm, st *Status) (bool, *Message, error) {
	if err := c.checkSource(source, tag); err != nil {
		return false, nil, err
	}
	if source == procNull {
		st.set(ofProcNull)
		return true, messageNoProc, nil
	}
	m, err := c.p2p.Improbe(c.sourceOf(source), tagOf(tag))
	if err != nil || m == nil {
		return false, nil, err
	}
	return true, taken(m, c, st), nil
}

func Mrecv(buf Addr, n int, t *Datatype, h *Handle, st *Status) error {
	m, err := claim(n, t, h)
	if err != nil {
		return err
	}
	return m.receive(buf, n, t, st)
}

// claim takes the message behind h, which becomes null.
func claim(n int, t *Datatype, h *Handle) (*Message, error) {
	if err := checkData(n, t); err != nil {
		return nil, err
	}
	m := messages.find(*h)
	if m == nil {
		return nil, wrong(errRequest, "the message is not valid")
	}
	if m.m != nil {
		messages.remove(*h)
	}
	*h = messages.null
	return m, nil
}

func (m *Message) receive(buf Addr, n int, t *Datatype, st *Status) error {
	if m.m == nil {
		st.set(ofProcNull)
		return nil
	}
	b := t.incoming(buf, n)
	got, err := m.m.Recv(forever, b.Buffer)
	b.arrived(got.Bytes)
	st.set(m.c.statusOf(got))
	return err
}

// tagOf returns a tag of a receive as comm has it.
func tagOf(tag int) int {
	if tag == anyTag {
		return comm.AnyTag
	}
	return tag
}
