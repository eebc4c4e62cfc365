package collective

import (
	"context"
	"sync"

	"gompi/internal/core"
	"gompi/internal/core/call"
	"gompi/internal/mem"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/datatype"
	"gompi/mpi/internal/dtypes"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/p2p"
)

// A Plan is a collective with its arguments. The methods named after collectives fill it in; its
// blocking, nonblocking and persistent forms begin and end with it. Data that is not one run of
// bytes is packed when it begins, and unpacked when it is over.
type Plan struct {
	c      *comms.Comm
	o      call.Call
	own    *core.Comm                                      // of a persistent one: what it runs on in the place of c's
	inter  *comms.Inter                                    // the same, of an intercommunicator
	linear func() (*p2p.Request, error)                    // starts what is made of messages, in the place of o
	steps  func(ctx context.Context, x *comms.Inter) error // is the whole of it, on an intercommunicator
	outs   []dtypes.Staged
	ins    []dtypes.Staged

	combined []byte // of an intercommunicator's reduction
}

// plans are those of blocking collectives, and of started ones that are messages: they keep their
// lists.
var plans = sync.Pool{New: func() any { return new(Plan) }}

// NewPlan returns the plan of a collective that is started.
func NewPlan(c *comms.Comm) *Plan { return PlanOf(c) }

// PlanOf returns the plan of a blocking collective, which Block takes back.
func PlanOf(c *comms.Comm) *Plan {
	p := plans.Get().(*Plan)
	p.c = c
	return p
}

func (p *Plan) done() {
	clear(p.outs)
	clear(p.ins)
	*p = Plan{outs: p.outs[:0], ins: p.ins[:0]}
	plans.Put(p)
}

// Block does p, which is of PlanOf, and takes it back. err is why it could not be filled in.
func (p *Plan) Block(err error) error {
	if err == nil {
		err = p.do()
	}
	p.done()
	return err
}

func (p *Plan) do() error {
	switch {
	case p.steps != nil:
		return p.c.Inter.Do(func(ctx context.Context) error { return p.steps(ctx, p.c.Inter) })
	case p.linear != nil:
		r, err := p.linear()
		if err != nil {
			return err
		}
		return r.Wait(nil)
	}
	return p.run(comms.Forever)
}

// run does p, one of the engine's collectives.
func (p *Plan) run(ctx context.Context) error {
	p.begin()
	if err := p.c.P2P.Do(ctx, &p.o); err != nil {
		return err
	}
	p.end()
	return nil
}

// Start starts p.
func (p *Plan) Start(err error) (*p2p.Request, error) {
	switch {
	case err != nil:
		return nil, err
	case p.linear != nil:
		defer p.done() // what has begun needs it no more
		return p.linear()
	}
	r := p2p.NewRequest(p.c)
	p.launch(r)
	return r, nil
}

func (p *Plan) launch(r *p2p.Request) {
	if p.steps != nil {
		x := p.c.Inter
		if p.inter != nil {
			x = p.inter
		}
		r.Op = x.Enqueue(func(ctx context.Context) error { return p.steps(ctx, x) })
		return
	}
	p.begin()
	on := p.c.P2P
	if p.own != nil {
		on = p.own
	}
	r.Op = on.Start(&p.o)
	if len(p.ins) > 0 {
		r.Then = p.finish
	}
}

// Persist returns a request that starts p again and again. Ranks may start several requests in
// different orders (MPI 4.1, section 6.13): each has communicators of its own.
func (p *Plan) Persist(err error) (*p2p.Request, error) {
	if err != nil {
		return nil, err
	}
	var own []*core.Comm
	var close func()
	in := comms.In(p.o.Kind.MPI() + "_init")
	switch {
	case p.steps != nil:
		if p.inter, err = p.c.Inter.Copy(in); err == nil {
			own, close = []*core.Comm{p.inter.Local, p.inter.Both}, p.inter.CloseWhenIdle
		}
	case p.c.P2P.Size() > 1:
		p.own, err = p.c.P2P.Dup(in)
		own, close = []*core.Comm{p.own}, func() { comms.CloseWhenIdle(p.own) }
	}
	if err != nil {
		return nil, err
	}
	r := p2p.NewRequest(p.c)
	r.Own, r.Close = own, close
	p.c.KeepPrivate(own)
	r.Persist(func(r *p2p.Request) error {
		if p.linear != nil {
			return r.Become(p.linear)
		}
		p.launch(r)
		return nil
	})
	return r, nil
}

func (p *Plan) begin() {
	for i := range p.outs {
		p.outs[i].Leave()
	}
}

// finish is end for a request, of which err is the error.
func (p *Plan) finish(err error) error {
	if err == nil {
		p.end()
	}
	return err
}

func (p *Plan) end() {
	for i := range p.ins {
		p.ins[i].Arrive()
	}
}

// out returns n elements to be sent as bytes.
func (p *Plan) out(buf abi.Addr, n int, t *dtypes.Datatype) mem.Buffer {
	return packing(&p.outs, buf, n, t)
}

// in returns where n elements go.
func (p *Plan) in(buf abi.Addr, n int, t *dtypes.Datatype) mem.Buffer {
	return packing(&p.ins, buf, n, t)
}

// packing returns n elements as bytes: where they lie if they are one run, else in list and packed.
func packing(list *[]dtypes.Staged, buf abi.Addr, n int, t *dtypes.Datatype) mem.Buffer {
	if b, ok := t.Dense(buf, n); ok {
		return b
	}
	room := make([]byte, n*t.Size())
	*list = append(*list, t.Stage(buf, n, room))
	return mem.Bytes(room)
}

// A layout is blocks of elements, one for each rank: counts[i] elements displs[i] elements behind
// buf.
type layout struct {
	buf            abi.Addr
	counts, displs []int
	t              *dtypes.Datatype
}

func layoutOf(buf abi.Addr, counts, displs abi.Array, t *dtypes.Datatype, ranks int) layout {
	return layout{buf, counts.List(ranks), displs.List(ranks), t}
}

// block returns where block i begins and how many elements it has.
func (l *layout) block(i int) (abi.Addr, int) {
	return l.buf.Plus(l.displs[i] * l.t.Extent()), l.counts[i]
}

// check returns what is wrong with it.
func (l *layout) check() error {
	if err := dtypes.Check(0, l.t); err != nil {
		return err
	}
	bytes := 0
	for i, n := range l.counts {
		if n < 0 {
			return errs.New(errs.Count, "count %d is %d: want 0 or more", i, n)
		}
		if err := dtypes.Check(n, l.t); err != nil {
			return err
		}
		if _, ok := datatype.Times(l.t.Extent(), l.displs[i]); !ok && n > 0 {
			return errs.New(errs.Arg, "displacement %d is %d elements of %d bytes: want fewer than 2^61 bytes", i, l.displs[i], l.t.Extent())
		}
		if bytes += n * l.t.Size(); bytes < 0 {
			return errs.New(errs.Count, "the counts are of more bytes than there are addresses")
		}
	}
	return nil
}

// isDense reports whether each block is one run of bytes.
func (l *layout) isDense() bool {
	_, ok := l.t.Contiguous(2)
	return ok
}

// bytes returns l as core has it: one buffer, and counts and displacements of bytes in it. What is
// not dense is in list, and packed, block after block.
func (l *layout) bytes(list *[]dtypes.Staged) (b mem.Buffer, counts, displs []int) {
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
		*list = append(*list, l.t.Stage(at, n, part))
	}
	return mem.Bytes(room), counts, displs
}

// inPlace is bytes for dense blocks: the buffer reaches from the first to the end of the last.
func (l *layout) inPlace(counts, displs []int) (mem.Buffer, []int, []int) {
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
	return l.buf.Plus(at + lo).Buffer(hi - lo), counts, displs
}
