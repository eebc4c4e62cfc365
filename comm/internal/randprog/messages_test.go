package randprog

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gompi/comm"
	"gompi/internal/mem"
)

// An exchange is messages among the ranks of a communicator. Both ranks of a message
// come to it in the order of the list, and one of them may wait for the other there. A
// receiver may also post receives from some ranks before all else, or come to them when
// it has done all else, if their sends wait for nothing.
type exchange struct {
	header
	messages []message
	fenced   bool // a barrier follows, without which receives of any tag might take later messages
	until    int  // the unit before which a continuing message is waited for
}

// A message is one between two ranks of the communicator.
type message struct {
	from, to, tag int
	typ           mem.Type
	n, room       int // elements sent, and of the receive's buffer
	send          sendMode
	recv          recvMode
	times         int // a persistent one on both sides is sent
	when          phase
	anySource     bool // the receive may get any message to the receiver
	onlySource    bool // the receive is from any source, but only one sends to the receiver
	anyTag        bool
	wrongType     bool
}

// A phase is when a receiver comes to a message.
type phase int

const (
	early  phase = iota // before all else, without waiting
	inTurn              // in the order of the list
	late                // after all else
	phases
)

func (p phase) String() string { return [...]string{" early", "", " late"}[p] }

type sendMode int

const (
	send sendMode = iota
	ssend
	isend
	issend
	sendPersistent
	ssendPersistent
	sendModes
)

type recvMode int

const (
	recv recvMode = iota
	irecv
	recvPersistent
	probe
	iprobe
	mprobe
	improbe
	recvModes
)

func (m sendMode) String() string {
	return [...]string{"send", "ssend", "isend", "issend", "persistent", "persistent ssend"}[m]
}

func (m recvMode) String() string {
	return [...]string{"recv", "irecv", "persistent", "probe", "iprobe", "mprobe", "improbe"}[m]
}

func (x *exchange) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d messages, until unit %d", len(x.messages), x.until)
	if x.fenced {
		b.WriteString(", then a barrier")
	}
	for _, m := range x.messages {
		fmt.Fprintf(&b, "\n          %v", &m)
	}
	return b.String()
}

func (m *message) String() string {
	s := fmt.Sprintf("%d to %d, tag %d: %d %v, %v, %v%v", m.from, m.to, m.tag, m.n, m.typ, m.send, m.recv, m.when)
	for _, is := range []struct {
		so   bool
		word string
	}{
		{m.room != m.n, fmt.Sprintf(" of %d", m.room)}, {m.times > 1, fmt.Sprintf(" %d times", m.times)},
		{m.anySource || m.onlySource, " from any"}, {m.anyTag, " any tag"}, {m.wrongType, " as another type"},
	} {
		if is.so {
			s += is.word
		}
	}
	return s
}

func (x *exchange) run(r *runner, c *comm.Comm) error {
	if c == nil {
		return nil
	}
	me := c.Rank()
	inbox := &inbox{x: x, me: me}
	for now := range phases {
		for i := range x.messages {
			m := &x.messages[i]
			r.pause()
			if now == inTurn && m.from == me {
				if err := x.sendOne(r, c, i); err != nil {
					return fmt.Errorf("message %d (%v): %w", i, m, err)
				}
			}
			if m.to == me && m.when == now {
				if err := x.receiveOne(r, c, i, inbox); err != nil {
					return fmt.Errorf("message %d (%v): %w", i, m, err)
				}
			}
		}
	}
	if !x.fenced {
		return nil
	}
	return errors.Join(r.awaitAll(func(p *pending) bool { return p.unit == x.id }), c.Barrier(r.ctx))
}

// content returns message i as it is sent the given time.
func (x *exchange) content(i, time int) []byte {
	m := &x.messages[i]
	seed := x.seed + uint64(i)<<20 + uint64(time)<<50
	return encode(m.typ, m.n, 1, func(k int) value { return valueOf(seed, m.typ, mem.NoOp, 0, k) })
}

func (x *exchange) sendOne(r *runner, c *comm.Comm, i int) error {
	m := &x.messages[i]
	f := newFenced(m.typ, m.n)
	b := f.inner()
	fill := func(time int) { copy(b.HostSlice(), x.content(i, time)) }
	fill(0)
	check := func(time int) error {
		return errors.Join(f.check(), differ("what was sent", m.typ, b.HostSlice(), x.content(i, time)))
	}
	switch m.send {
	case send:
		return errors.Join(c.Send(r.ctx, m.to, m.tag, b), check(0))
	case ssend:
		return errors.Join(c.Ssend(r.ctx, m.to, m.tag, b), check(0))
	case isend, issend:
		begin := c.Isend
		if m.send == issend {
			begin = c.Issend
		}
		r.goesOn(&pending{unit: x.id, until: x.until, req: begin(m.to, m.tag, b), what: m.String(),
			done: func(o outcome) error {
				return errors.Join(o.err, check(0))
			}})
		return nil
	}
	p := c.SendInit(m.to, m.tag, b)
	if m.send == ssendPersistent {
		p = c.SsendInit(m.to, m.tag, b)
	}
	for time := range m.times {
		fill(time)
		if _, err := p.Start().Wait(r.ctx); err != nil {
			return err
		}
		if err := check(time); err != nil {
			return err
		}
		r.pause()
	}
	return nil
}

// An inbox is the messages that one rank still expects, by receives from any source.
type inbox struct {
	x    *exchange
	me   int
	seen []bool
}

// next returns the message that a receive from any source has got: the first from its
// source that none has got before.
func (in *inbox) next(source int) (int, error) {
	if in.seen == nil {
		in.seen = make([]bool, len(in.x.messages))
	}
	for i := range in.x.messages {
		if m := &in.x.messages[i]; m.to == in.me && m.from == source && !in.seen[i] {
			in.seen[i] = true
			return i, nil
		}
	}
	return 0, fmt.Errorf("a message from rank %d, which has sent no more", source)
}

// A delivery is a receive of message i, or of any for which it stands.
type delivery struct {
	x     *exchange
	i     int
	inbox *inbox
	into  *fenced
	typ   mem.Type // of the buffer
}

func (x *exchange) receiveOne(r *runner, c *comm.Comm, i int, in *inbox) error {
	m := &x.messages[i]
	d := &delivery{x: x, i: i, inbox: in, typ: m.typ}
	room := m.room
	if m.wrongType {
		d.typ, room = other(m.typ), (m.n*m.typ.Size()+15)/other(m.typ).Size()
	}
	d.into = newFenced(d.typ, room)
	from, tag := m.from, m.tag
	if m.anySource || m.onlySource {
		from = comm.AnySource
	}
	if m.anyTag {
		tag = comm.AnyTag
	}
	b := d.into.inner()
	switch m.recv {
	case irecv:
		r.goesOn(&pending{unit: x.id, until: x.until, req: c.Irecv(from, tag, b), what: m.String(),
			needsStatus: m.anySource, done: func(o outcome) error {
				return d.check(o, 0)
			}})
		return nil
	case recvPersistent:
		p := c.RecvInit(from, tag, b)
		for time := range m.times {
			st, err := p.Start().Wait(r.ctx)
			if err := d.check(outcome{st, true, err}, time); err != nil {
				return err
			}
			r.pause()
		}
		return nil
	}
	st, err := take(r, c, m.recv, from, tag, b)
	return d.check(outcome{st, true, err}, 0)
}

// other is a type that is refused where t is sent.
func other(t mem.Type) mem.Type {
	if t == mem.F64 {
		return mem.I64
	}
	return mem.F64
}

// take receives by Recv, or after a probe that tells the same.
func take(r *runner, c *comm.Comm, how recvMode, from, tag int, b comm.Buffer) (comm.Status, error) {
	var probed comm.Status
	var msg *comm.Message
	var err error
	switch how {
	case probe:
		probed, err = c.Probe(r.ctx, from, tag)
	case mprobe:
		msg, err = c.Mprobe(r.ctx, from, tag)
	case iprobe, improbe:
		for there := false; !there && err == nil; err = errors.Join(err, context.Cause(r.ctx)) {
			if r.pause(); how == improbe {
				msg, err = c.Improbe(from, tag)
				there = msg != nil
				continue
			}
			probed, there, err = c.Iprobe(from, tag)
		}
	}
	if err != nil {
		return probed, err
	}
	r.pause()
	var st comm.Status
	switch {
	case msg != nil:
		probed = msg.Status
		st, err = msg.Recv(r.ctx, b)
	case how == recv:
		return c.Recv(r.ctx, from, tag, b)
	default:
		st, err = c.Recv(r.ctx, probed.Source, probed.Tag, b)
	}
	if st != probed {
		return st, fmt.Errorf("the probe said %+v, the receive %+v, %v", probed, st, err)
	}
	return st, err
}

// check compares the outcome of a receive with the sent message.
func (d *delivery) check(o outcome, time int) error {
	m, st, err := &d.x.messages[d.i], o.st, o.err
	if m.anySource && err == nil {
		var wrong error
		if d.i, wrong = d.inbox.next(st.Source); wrong != nil {
			return wrong
		}
		m = &d.x.messages[d.i]
	}
	got := d.into.inner().HostSlice()
	sent := d.x.content(d.i, time)
	switch short := len(sent) > len(got) && !m.wrongType; {
	case m.wrongType && errors.Is(err, comm.ErrType), short && errors.Is(err, comm.ErrTruncated),
		err == nil && !short && !m.wrongType:
	default:
		return fmt.Errorf("received by rank %d into %d bytes: %w", d.inbox.me, len(got), cmpError(err))
	}
	if err := d.into.check(); err != nil {
		return err
	}
	if m.wrongType {
		return nil
	}
	if o.known && (st.Source != m.from || st.Tag != m.tag || st.Bytes != len(sent) || st.Type != m.typ) {
		return fmt.Errorf("status %+v, want source %d, tag %d, %d bytes of %v", st, m.from, m.tag, len(sent), m.typ)
	}
	n := min(len(got), len(sent))
	return differ(fmt.Sprintf("message %d (%v), received", d.i, m), m.typ, got[:n], sent[:n])
}

// cmpError is err, or that there was none where one was expected.
func cmpError(err error) error {
	if err == nil {
		return errors.New("no error, where the message does not fit")
	}
	return err
}
