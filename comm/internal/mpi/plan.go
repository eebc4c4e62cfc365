package mpi

import (
	"unsafe"

	"gompi/comm"
	"gompi/comm/internal/call"
	"gompi/comm/internal/door"
	"gompi/internal/mem"
)

// A plan is a collective with its arguments. The methods named after collectives fill it in; its
// blocking, nonblocking and persistent forms begin and end with it. Data that is not one run of
// bytes is packed when it begins, and unpacked when it is over.
type plan struct {
	c      *Comm
	o      call.Call
	own    *comm.Comm               // of a persistent one: what it runs on in the place of c's
	none   bool                     // nothing is to be done here
	linear func() (*Request, error) // starts what is made of messages, in the place of o
	steps  func() error             // is the whole of it, on an intercommunicator
	outs   []departure
	ins    []landing

	combined []byte // of an intercommunicator's reduction
}

// A departure is data to be packed into room.
type departure struct {
	t      *Datatype
	buf    Addr
	n      int
	room   []byte
	spread bool // room has elements as an array of t has them, for an operator
}

func (d *departure) leave() {
	if !d.spread {
		d.t.Pack(d.room, uintptr(d.buf), d.n)
		return
	}
	d.t.Unpack(d.t.base(d.room), d.n, d.t.packed(d.buf, d.n))
}

// base returns the address of an array of t whose first element begins with room.
func (t *Datatype) base(room []byte) uintptr {
	return uintptr(unsafe.Pointer(unsafe.SliceData(room))) - uintptr(t.Lb())
}

// planOf returns the plan that a blocking collective of c uses again and again: a communicator is
// in one at a time. If it is in use after all, comm finds the error.
func planOf(c *Comm) *plan {
	if c == nil || !c.planned.CompareAndSwap(false, true) {
		return &plan{c: c}
	}
	p := &c.plan
	p.c = c
	return p
}

// done returns p to its communicator.
func (p *plan) done() {
	c := p.c
	if c == nil || p != &c.plan {
		return
	}
	clear(p.outs)
	clear(p.ins)
	*p = plan{outs: p.outs[:0], ins: p.ins[:0]}
	c.planned.Store(false)
}

// door returns comm's way in for calls.
func (c *Comm) door() door.Comm[comm.Request] { return door.Of[comm.Request](c.p2p) }

// block does p. err is why it could not be filled in.
func (p *plan) block(err error) error {
	defer p.done()
	switch {
	case err != nil || p.none:
		return err
	case p.steps != nil:
		return p.c.inter.do(p.steps)
	case p.linear != nil:
		r, err := p.linear()
		if err != nil {
			return err
		}
		return r.wait(nil)
	}
	p.begin()
	if err := p.c.door().Do(forever, &p.o); err != nil {
		return err
	}
	p.end()
	return nil
}

// start starts p.
func (p *plan) start(err error) (*Request, error) {
	switch {
	case err != nil:
		return nil, err
	case p.none:
		return requestDone, nil
	case p.linear != nil:
		return p.linear()
	}
	r := newRequest(p.c)
	p.launch(r)
	return r, nil
}

func (p *plan) launch(r *Request) {
	if p.steps != nil {
		r.op = p.c.inter.enqueue(p.steps)
		return
	}
	p.begin()
	on := p.c.p2p
	if p.own != nil {
		on = p.own
	}
	r.op = door.Of[comm.Request](on).Start(&p.o)
	if len(p.ins) > 0 {
		r.then = p.finish
	}
}

// persist returns a request that starts p again and again.
func (p *plan) persist(err error) (*Request, error) {
	if err != nil {
		return nil, err
	}
	r := newRequest(p.c)
	if p.steps == nil && p.c.p2p.Size() > 1 { // ranks may start requests in another order than they make them
		if p.own, err = p.c.p2p.Dup(forever); err != nil {
			return nil, err
		}
		r.own = p.own
	}
	r.active = false
	r.again = func(r *Request) error {
		switch {
		case p.none:
			r.over, r.st = true, ofNothing
		case p.linear != nil:
			return r.become(p.linear)
		default:
			p.launch(r)
		}
		return nil
	}
	return r, nil
}

// become makes r, which is persistent, wait for what start has started.
func (r *Request) become(start func() (*Request, error)) error {
	s, err := start()
	if err != nil {
		return err
	}
	r.op, r.others, r.then = s.op, s.others, s.then
	if s == requestDone {
		r.over, r.st = true, ofNothing
		return nil
	}
	s.others, s.then = nil, nil
	s.release()
	return nil
}

func (p *plan) begin() {
	for i := range p.outs {
		p.outs[i].leave()
	}
}

// finish is end for a request, of which err is the error.
func (p *plan) finish(err error) error {
	if err == nil {
		p.end()
	}
	return err
}

func (p *plan) end() {
	for i := range p.ins {
		p.ins[i].arrived(len(p.ins[i].room))
	}
}

// out returns n elements to be sent as bytes.
func (p *plan) out(buf Addr, n int, t *Datatype) comm.Buffer {
	if at, ok := t.Contiguous(n); ok {
		return buf.plus(at).buffer(n * t.Size())
	}
	room := make([]byte, n*t.Size())
	p.outs = append(p.outs, departure{t: t, buf: buf, n: n, room: room})
	return mem.Bytes(room)
}

// in returns where n elements go.
func (p *plan) in(buf Addr, n int, t *Datatype) comm.Buffer {
	l := t.incoming(buf, n)
	if l.t != nil {
		p.ins = append(p.ins, l)
	}
	return l.Buffer
}

// A layout is blocks of elements, one for each rank: counts[i] elements displs[i] elements behind
// buf.
type layout struct {
	buf            Addr
	counts, displs []int
	t              *Datatype
}

func layoutOf(buf Addr, counts, displs Array, t *Datatype, ranks int) layout {
	return layout{buf, counts.list(ranks), displs.list(ranks), t}
}

// block returns where block i begins and how many elements it has.
func (l *layout) block(i int) (Addr, int) { return l.buf.plus(l.displs[i] * l.t.Extent()), l.counts[i] }

// check returns what is wrong with it.
func (l *layout) check() error {
	if err := checkData(0, l.t); err != nil {
		return err
	}
	for i, n := range l.counts {
		if n < 0 {
			return wrong(errCount, "count %d is %d: want 0 or more", i, n)
		}
	}
	return nil
}

// isDense reports whether each block is one run of bytes.
func (l *layout) isDense() bool {
	_, ok := l.t.Contiguous(2)
	return ok
}

// bytes returns l as comm has it: one buffer, and counts and displacements of bytes in it. What is
// not dense is packed, block after block.
func (l *layout) bytes(p *plan, incoming bool) (b comm.Buffer, counts, displs []int) {
	counts, displs = make([]int, len(l.counts)), make([]int, len(l.counts))
	if l.isDense() {
		return l.inPlace(counts, displs)
	}
	total := 0
	for i, n := range l.counts {
		counts[i], displs[i] = n*l.t.Size(), total
		total += counts[i]
	}
	room := make([]byte, total)
	for i := range l.counts {
		at, n := l.block(i)
		part := room[displs[i]:][:counts[i]]
		if incoming {
			p.ins = append(p.ins, landing{t: l.t, buf: at, n: n, room: part})
		} else {
			p.outs = append(p.outs, departure{t: l.t, buf: at, n: n, room: part})
		}
	}
	return mem.Bytes(room), counts, displs
}

// inPlace is bytes for dense blocks: the buffer reaches from the first to the end of the last.
func (l *layout) inPlace(counts, displs []int) (comm.Buffer, []int, []int) {
	at, _ := l.t.Contiguous(1)
	lo, hi, some := 0, 0, false
	for i, n := range l.counts {
		counts[i] = n * l.t.Size()
		displs[i] = l.displs[i] * l.t.Extent()
		if n == 0 {
			continue
		}
		if !some || displs[i] < lo {
			lo = displs[i]
		}
		if !some || displs[i]+counts[i] > hi {
			hi = displs[i] + counts[i]
		}
		some = true
	}
	for i, n := range l.counts {
		if displs[i] -= lo; n == 0 {
			displs[i] = 0
		}
	}
	return l.buf.plus(at + lo).buffer(hi - lo), counts, displs
}
