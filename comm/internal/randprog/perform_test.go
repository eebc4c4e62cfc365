package randprog

import (
	"context"
	"errors"
	"fmt"

	"gompi/comm"
	"gompi/internal/mem"
)

func (c *collective) run(r *runner, on *comm.Comm) error {
	if on == nil {
		return nil
	}
	m, err := c.memory(r, on)
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	m.fill(0)
	r.pause()
	switch {
	case c.kind == "reducefunc" || c.kind == "allreducefunc":
		err = c.function(r.ctx, on, m)
	case c.how == blocking:
		err = calls[c.kind].do(r.ctx, on, c, m)
	case c.how == nonblocking:
		m.goesOn(r, calls[c.kind].start(on, c, m))
		return nil
	default:
		p := calls[c.kind].init(on, c, m)
		if c.times == 1 {
			m.goesOn(r, p.Start())
			return nil
		}
		for round := range c.times {
			m.fill(round)
			r.pause()
			_, err := p.Start().Wait(r.ctx)
			if err := errors.Join(err, m.check(round)); err != nil {
				return err
			}
		}
		return m.free(r.ctx, on)
	}
	if err := errors.Join(err, m.check(0)); err != nil {
		return err
	}
	return m.free(r.ctx, on)
}

// A place is where one rank has the buffers of a collective.
type place struct {
	c          *collective
	on         *comm.Comm
	call       call
	me, size   int
	fences     []*fenced
	send, recv mem.Buffer
	block      mem.Buffer // from Alloc
	lent       bool
}

// memory returns the buffers of this rank.
func (c *collective) memory(r *runner, on *comm.Comm) (m *place, err error) {
	m = &place{c: c, on: on, me: on.Rank(), size: on.Size()}
	m.call = c.call(m.me, m.size)
	get := func(n int) *fenced { return newFenced(c.typ, n) }
	if c.alloc {
		most := 0 // Alloc is asked for as much on all ranks
		for rank := range m.size {
			k := c.call(rank, m.size)
			most = max(most, k.send+k.recv+4*margin)
		}
		if m.block, err = on.Alloc(r.ctx, c.typ, most); err != nil {
			return nil, err
		}
		m.lent = true
		if rest := m.block; r.rng.IntN(8) > 0 { // else a rank uses memory of its own
			get = func(n int) *fenced {
				f := fence(rest, n)
				rest = rest.Slice(n+2*margin, rest.Len())
				return f
			}
		}
	}
	take := func(n int) mem.Buffer {
		f := get(n)
		m.fences = append(m.fences, f)
		return f.inner()
	}
	switch k := &m.call; {
	case k.sendAt != apart:
		m.recv = take(k.recv)
		m.send = m.recv.Slice(k.sendAt, k.sendAt+k.send)
	case k.recvAt != apart:
		m.send = take(k.send)
		m.recv = m.send.Slice(k.recvAt, k.recvAt+k.recv)
	default:
		m.send, m.recv = take(k.send), take(k.recv)
	}
	return m, nil
}

// sendEach returns the buffers that go to each rank in an alltoallw.
func (m *place) sendEach() []mem.Buffer {
	return m.c.each(m.send, m.call.sendCounts, m.call.sendDispls, m.me)
}

// recvEach returns the buffers for each rank's message in an alltoallw.
func (m *place) recvEach() []mem.Buffer { return m.c.each(m.recv, m.call.counts, m.call.displs, m.me) }

// free gives the memory back.
func (m *place) free(ctx context.Context, on *comm.Comm) error {
	if !m.lent {
		return nil
	}
	return on.Free(ctx, m.block)
}

// fill fills the buffers for the beginning of a round.
func (m *place) fill(round int) {
	img := m.c.image(&m.call, m.me, m.size, round)
	if m.call.sendAt == apart {
		copy(m.send.HostSlice(), img.sendBefore)
	}
	if m.call.recvAt == apart {
		copy(m.recv.HostSlice(), img.recvBefore)
	}
}

// check compares the buffers with the required content after a round.
func (m *place) check(round int) error {
	img := m.c.image(&m.call, m.me, m.size, round)
	var err error
	if img.sendAfter != nil {
		err = differ("send", m.c.typ, m.send.HostSlice(), img.sendAfter)
	}
	err = errors.Join(err, differ("recv", m.c.typ, m.recv.HostSlice(), img.recvAfter))
	for _, f := range m.fences {
		err = errors.Join(err, f.check())
	}
	if err != nil {
		return fmt.Errorf("rank %d of %d, round %d: %w", m.me, m.size, round, err)
	}
	return nil
}

// goesOn notes that the collective is to be waited for.
func (m *place) goesOn(r *runner, req comm.Request) {
	r.goesOn(&pending{unit: m.c.id, until: m.c.until, what: m.c.String(), req: req,
		done: func(o outcome) error { return errors.Join(o.err, m.check(0)) },
		free: func() error { return m.free(r.ctx, m.on) },
	})
}

// function calls a reduction with a function of the user's.
func (c *collective) function(ctx context.Context, on *comm.Comm, m *place) error {
	f := func(acc, in []uint16) {
		for i := range acc {
			acc[i] = compose(acc[i], in[i])
		}
	}
	send, recv := mem.Slice[uint16](m.send), mem.Slice[uint16](m.recv)
	if c.kind == "allreducefunc" {
		return comm.AllreduceFunc(ctx, on, send, recv, f)
	}
	return comm.ReduceFunc(ctx, on, c.root, send, recv, f)
}

// A spelling is a collective in its three forms.
type spelling struct {
	do    func(ctx context.Context, on *comm.Comm, c *collective, m *place) error
	start func(on *comm.Comm, c *collective, m *place) comm.Request
	init  func(on *comm.Comm, c *collective, m *place) *comm.Persistent
}

type (
	ctxt = context.Context
	cm   = *comm.Comm
	co   = *collective
	pl   = *place
	req  = comm.Request
	per  = *comm.Persistent
)

var calls = map[string]spelling{
	"barrier": {
		func(x ctxt, on cm, c co, m pl) error { return on.Barrier(x) },
		func(on cm, c co, m pl) req { return on.Ibarrier() },
		func(on cm, c co, m pl) per { return on.BarrierInit() }},
	"bcast": {
		func(x ctxt, on cm, c co, m pl) error { return on.Bcast(x, c.root, m.recv) },
		func(on cm, c co, m pl) req { return on.Ibcast(c.root, m.recv) },
		func(on cm, c co, m pl) per { return on.BcastInit(c.root, m.recv) }},
	"gather": {
		func(x ctxt, on cm, c co, m pl) error { return on.Gather(x, c.root, m.send, m.recv) },
		func(on cm, c co, m pl) req { return on.Igather(c.root, m.send, m.recv) },
		func(on cm, c co, m pl) per { return on.GatherInit(c.root, m.send, m.recv) }},
	"gatherv": {
		func(x ctxt, on cm, c co, m pl) error {
			return on.Gatherv(x, c.root, m.send, m.recv, m.call.counts, m.call.displs)
		},
		func(on cm, c co, m pl) req {
			return on.Igatherv(c.root, m.send, m.recv, m.call.counts, m.call.displs)
		},
		func(on cm, c co, m pl) per {
			return on.GathervInit(c.root, m.send, m.recv, m.call.counts, m.call.displs)
		}},
	"scatter": {
		func(x ctxt, on cm, c co, m pl) error { return on.Scatter(x, c.root, m.send, m.recv) },
		func(on cm, c co, m pl) req { return on.Iscatter(c.root, m.send, m.recv) },
		func(on cm, c co, m pl) per { return on.ScatterInit(c.root, m.send, m.recv) }},
	"scatterv": {
		func(x ctxt, on cm, c co, m pl) error {
			return on.Scatterv(x, c.root, m.send, m.recv, m.call.counts, m.call.displs)
		},
		func(on cm, c co, m pl) req {
			return on.Iscatterv(c.root, m.send, m.recv, m.call.counts, m.call.displs)
		},
		func(on cm, c co, m pl) per {
			return on.ScattervInit(c.root, m.send, m.recv, m.call.counts, m.call.displs)
		}},
	"allgather": {
		func(x ctxt, on cm, c co, m pl) error { return on.Allgather(x, m.send, m.recv) },
		func(on cm, c co, m pl) req { return on.Iallgather(m.send, m.recv) },
		func(on cm, c co, m pl) per { return on.AllgatherInit(m.send, m.recv) }},
	"allgatherv": {
		func(x ctxt, on cm, c co, m pl) error {
			return on.Allgatherv(x, m.send, m.recv, m.call.counts, m.call.displs)
		},
		func(on cm, c co, m pl) req { return on.Iallgatherv(m.send, m.recv, m.call.counts, m.call.displs) },
		func(on cm, c co, m pl) per { return on.AllgathervInit(m.send, m.recv, m.call.counts, m.call.displs) }},
	"alltoall": {
		func(x ctxt, on cm, c co, m pl) error { return on.Alltoall(x, m.send, m.recv) },
		func(on cm, c co, m pl) req { return on.Ialltoall(m.send, m.recv) },
		func(on cm, c co, m pl) per { return on.AlltoallInit(m.send, m.recv) }},
	"alltoallv": {
		func(x ctxt, on cm, c co, m pl) error {
			return on.Alltoallv(x, m.send, m.call.sendCounts, m.call.sendDispls, m.recv, m.call.counts, m.call.displs)
		},
		func(on cm, c co, m pl) req {
			return on.Ialltoallv(m.send, m.call.sendCounts, m.call.sendDispls, m.recv, m.call.counts, m.call.displs)
		},
		func(on cm, c co, m pl) per {
			return on.AlltoallvInit(m.send, m.call.sendCounts, m.call.sendDispls, m.recv, m.call.counts, m.call.displs)
		}},
	"alltoallw": {
		func(x ctxt, on cm, c co, m pl) error { return on.Alltoallw(x, m.sendEach(), m.recvEach()) },
		func(on cm, c co, m pl) req { return on.Ialltoallw(m.sendEach(), m.recvEach()) },
		func(on cm, c co, m pl) per { return on.AlltoallwInit(m.sendEach(), m.recvEach()) }},
	"reduce": {
		func(x ctxt, on cm, c co, m pl) error { return on.Reduce(x, c.root, m.send, m.recv, c.op) },
		func(on cm, c co, m pl) req { return on.Ireduce(c.root, m.send, m.recv, c.op) },
		func(on cm, c co, m pl) per { return on.ReduceInit(c.root, m.send, m.recv, c.op) }},
	"allreduce": {
		func(x ctxt, on cm, c co, m pl) error { return on.Allreduce(x, m.send, m.recv, c.op) },
		func(on cm, c co, m pl) req { return on.Iallreduce(m.send, m.recv, c.op) },
		func(on cm, c co, m pl) per { return on.AllreduceInit(m.send, m.recv, c.op) }},
	"scan": {
		func(x ctxt, on cm, c co, m pl) error { return on.Scan(x, m.send, m.recv, c.op) },
		func(on cm, c co, m pl) req { return on.Iscan(m.send, m.recv, c.op) },
		func(on cm, c co, m pl) per { return on.ScanInit(m.send, m.recv, c.op) }},
	"exscan": {
		func(x ctxt, on cm, c co, m pl) error { return on.Exscan(x, m.send, m.recv, c.op) },
		func(on cm, c co, m pl) req { return on.Iexscan(m.send, m.recv, c.op) },
		func(on cm, c co, m pl) per { return on.ExscanInit(m.send, m.recv, c.op) }},
	"reducescatter": {
		func(x ctxt, on cm, c co, m pl) error { return on.ReduceScatter(x, m.send, m.recv, m.call.counts, c.op) },
		func(on cm, c co, m pl) req { return on.IreduceScatter(m.send, m.recv, m.call.counts, c.op) },
		func(on cm, c co, m pl) per { return on.ReduceScatterInit(m.send, m.recv, m.call.counts, c.op) }},
	"reducescatterblock": {
		func(x ctxt, on cm, c co, m pl) error { return on.ReduceScatterBlock(x, m.send, m.recv, c.op) },
		func(on cm, c co, m pl) req { return on.IreduceScatterBlock(m.send, m.recv, c.op) },
		func(on cm, c co, m pl) per { return on.ReduceScatterBlockInit(m.send, m.recv, c.op) }},
}
