package collective

import (
	"context"
	"sync"

	"gompi/internal/core"
	"gompi/internal/core/call"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/dtypes"
	"gompi/mpi/internal/p2p"
)

// A Plan is a collective with its arguments, which Fill and Neighbor fill in. Its blocking,
// nonblocking and persistent forms begin and end with the Plan. Data that is not contiguous is
// packed at the beginning, and unpacked at the end.
type Plan struct {
	c      *comms.Comm
	o      call.Call
	own    *core.Comm                                      // of a persistent collective: replaces c's communicator
	inter  *comms.Inter                                    // the same, of an intercommunicator
	linear func() (*p2p.Request, error)                    // starts a collective made of messages, in the place of o
	steps  func(ctx context.Context, x *comms.Inter) error // the whole collective, on an intercommunicator
	outs   []dtypes.Staged
	ins    []dtypes.Staged
	lists  []int // counts and displacements

	combined []byte // of an intercommunicator's reduction
}

// plans are the plans of blocking collectives, and of started collectives made of messages: they
// keep their lists.
var plans = sync.Pool{New: func() any { return new(Plan) }}

// PlanOf returns a plan, which Block recycles.
func PlanOf(c *comms.Comm) *Plan {
	p := plans.Get().(*Plan)
	p.c = c
	return p
}

// list returns a copy of n integers, as long as p is in use.
func (p *Plan) list(a abi.Array, n int) []int {
	at := len(p.lists)
	p.lists = a.Append(p.lists, n)
	return p.lists[at:len(p.lists):len(p.lists)]
}

func (p *Plan) done() {
	clear(p.outs)
	clear(p.ins)
	*p = Plan{outs: p.outs[:0], ins: p.ins[:0], lists: p.lists[:0]}
	plans.Put(p)
}

// Block does p, a plan of PlanOf, and recycles p. err is the error of filling in p.
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

// run does p, a collective of the engine's.
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
		defer p.done() // the started messages do not need the plan
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
