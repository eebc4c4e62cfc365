package core_test

import (
	"context"

	"gompi/comm"
)

// args are the arguments of one collective on one rank.
type args[T comm.Scalar] struct {
	root                   int
	op                     comm.Op
	send, recv             []T // bcast: recv alone
	sendCounts, sendDispls []int
	counts, displs         []int
	on                     *[2]comm.Buffer // device memory that holds send and recv
}

func (a *args[T]) out() comm.Buffer {
	if a.on != nil {
		return a.on[0]
	}
	return comm.Of(a.send)
}

func (a *args[T]) in() comm.Buffer {
	if a.on != nil {
		return a.on[1]
	}
	return comm.Of(a.recv)
}

// A form is one collective in its four spellings, which must mean the same.
type form[T comm.Scalar] struct {
	slices     func(ctx context.Context, c *comm.Comm, a *args[T]) error
	buffers    func(c *comm.Comm, ctx context.Context, a *args[T]) error
	start      func(c *comm.Comm, a *args[T]) comm.Request
	persistent func(c *comm.Comm, a *args[T]) *comm.Persistent
}

func formOf[T comm.Scalar](kind string) form[T] {
	for _, table := range []map[string]form[T]{plainForms[T](), reducingForms[T](), vectorForms[T]()} {
		if f, ok := table[kind]; ok {
			return f
		}
	}
	panic("no form for " + kind)
}

type (
	ctxt = context.Context
	cm   = *comm.Comm
	req  = comm.Request
	per  = *comm.Persistent
)

func plainForms[T comm.Scalar]() map[string]form[T] {
	type A = *args[T]
	return map[string]form[T]{
		"barrier": {
			func(x ctxt, c cm, a A) error { return comm.Barrier(x, c) },
			func(c cm, x ctxt, a A) error { return c.Barrier(x) },
			func(c cm, a A) req { return c.Ibarrier() },
			func(c cm, a A) per { return c.BarrierInit() }},
		"bcast": {
			func(x ctxt, c cm, a A) error { return comm.Bcast(x, c, a.root, a.recv) },
			func(c cm, x ctxt, a A) error { return c.Bcast(x, a.root, a.in()) },
			func(c cm, a A) req { return c.Ibcast(a.root, a.in()) },
			func(c cm, a A) per { return c.BcastInit(a.root, a.in()) }},
		"allgather": {
			func(x ctxt, c cm, a A) error { return comm.Allgather(x, c, a.send, a.recv) },
			func(c cm, x ctxt, a A) error { return c.Allgather(x, a.out(), a.in()) },
			func(c cm, a A) req { return c.Iallgather(a.out(), a.in()) },
			func(c cm, a A) per { return c.AllgatherInit(a.out(), a.in()) }},
		"gather": {
			func(x ctxt, c cm, a A) error { return comm.Gather(x, c, a.root, a.send, a.recv) },
			func(c cm, x ctxt, a A) error { return c.Gather(x, a.root, a.out(), a.in()) },
			func(c cm, a A) req { return c.Igather(a.root, a.out(), a.in()) },
			func(c cm, a A) per { return c.GatherInit(a.root, a.out(), a.in()) }},
		"scatter": {
			func(x ctxt, c cm, a A) error { return comm.Scatter(x, c, a.root, a.send, a.recv) },
			func(c cm, x ctxt, a A) error { return c.Scatter(x, a.root, a.out(), a.in()) },
			func(c cm, a A) req { return c.Iscatter(a.root, a.out(), a.in()) },
			func(c cm, a A) per { return c.ScatterInit(a.root, a.out(), a.in()) }},
		"alltoall": {
			func(x ctxt, c cm, a A) error { return comm.Alltoall(x, c, a.send, a.recv) },
			func(c cm, x ctxt, a A) error { return c.Alltoall(x, a.out(), a.in()) },
			func(c cm, a A) req { return c.Ialltoall(a.out(), a.in()) },
			func(c cm, a A) per { return c.AlltoallInit(a.out(), a.in()) }},
	}
}

func reducingForms[T comm.Scalar]() map[string]form[T] {
	type A = *args[T]
	return map[string]form[T]{
		"reduce": {
			func(x ctxt, c cm, a A) error { return comm.Reduce(x, c, a.root, a.send, a.recv, a.op) },
			func(c cm, x ctxt, a A) error { return c.Reduce(x, a.root, a.out(), a.in(), a.op) },
			func(c cm, a A) req { return c.Ireduce(a.root, a.out(), a.in(), a.op) },
			func(c cm, a A) per { return c.ReduceInit(a.root, a.out(), a.in(), a.op) }},
		"allreduce": {
			func(x ctxt, c cm, a A) error { return comm.Allreduce(x, c, a.send, a.recv, a.op) },
			func(c cm, x ctxt, a A) error { return c.Allreduce(x, a.out(), a.in(), a.op) },
			func(c cm, a A) req { return c.Iallreduce(a.out(), a.in(), a.op) },
			func(c cm, a A) per { return c.AllreduceInit(a.out(), a.in(), a.op) }},
		"reducescatter": {
			func(x ctxt, c cm, a A) error { return comm.ReduceScatter(x, c, a.send, a.recv, a.counts, a.op) },
			func(c cm, x ctxt, a A) error { return c.ReduceScatter(x, a.out(), a.in(), a.counts, a.op) },
			func(c cm, a A) req { return c.IreduceScatter(a.out(), a.in(), a.counts, a.op) },
			func(c cm, a A) per { return c.ReduceScatterInit(a.out(), a.in(), a.counts, a.op) }},
		"reducescatterblock": {
			func(x ctxt, c cm, a A) error { return comm.ReduceScatterBlock(x, c, a.send, a.recv, a.op) },
			func(c cm, x ctxt, a A) error { return c.ReduceScatterBlock(x, a.out(), a.in(), a.op) },
			func(c cm, a A) req { return c.IreduceScatterBlock(a.out(), a.in(), a.op) },
			func(c cm, a A) per { return c.ReduceScatterBlockInit(a.out(), a.in(), a.op) }},
		"scan": {
			func(x ctxt, c cm, a A) error { return comm.Scan(x, c, a.send, a.recv, a.op) },
			func(c cm, x ctxt, a A) error { return c.Scan(x, a.out(), a.in(), a.op) },
			func(c cm, a A) req { return c.Iscan(a.out(), a.in(), a.op) },
			func(c cm, a A) per { return c.ScanInit(a.out(), a.in(), a.op) }},
		"exscan": {
			func(x ctxt, c cm, a A) error { return comm.Exscan(x, c, a.send, a.recv, a.op) },
			func(c cm, x ctxt, a A) error { return c.Exscan(x, a.out(), a.in(), a.op) },
			func(c cm, a A) req { return c.Iexscan(a.out(), a.in(), a.op) },
			func(c cm, a A) per { return c.ExscanInit(a.out(), a.in(), a.op) }},
	}
}

func vectorForms[T comm.Scalar]() map[string]form[T] {
	type A = *args[T]
	return map[string]form[T]{
		"allgatherv": {
			func(x ctxt, c cm, a A) error { return comm.Allgatherv(x, c, a.send, a.recv, a.counts, a.displs) },
			func(c cm, x ctxt, a A) error { return c.Allgatherv(x, a.out(), a.in(), a.counts, a.displs) },
			func(c cm, a A) req { return c.Iallgatherv(a.out(), a.in(), a.counts, a.displs) },
			func(c cm, a A) per { return c.AllgathervInit(a.out(), a.in(), a.counts, a.displs) }},
		"gatherv": {
			func(x ctxt, c cm, a A) error { return comm.Gatherv(x, c, a.root, a.send, a.recv, a.counts, a.displs) },
			func(c cm, x ctxt, a A) error { return c.Gatherv(x, a.root, a.out(), a.in(), a.counts, a.displs) },
			func(c cm, a A) req { return c.Igatherv(a.root, a.out(), a.in(), a.counts, a.displs) },
			func(c cm, a A) per { return c.GathervInit(a.root, a.out(), a.in(), a.counts, a.displs) }},
		"scatterv": {
			func(x ctxt, c cm, a A) error { return comm.Scatterv(x, c, a.root, a.send, a.recv, a.counts, a.displs) },
			func(c cm, x ctxt, a A) error { return c.Scatterv(x, a.root, a.out(), a.in(), a.counts, a.displs) },
			func(c cm, a A) req { return c.Iscatterv(a.root, a.out(), a.in(), a.counts, a.displs) },
			func(c cm, a A) per { return c.ScattervInit(a.root, a.out(), a.in(), a.counts, a.displs) }},
		"alltoallv": {
			func(x ctxt, c cm, a A) error {
				return comm.Alltoallv(x, c, a.send, a.sendCounts, a.sendDispls, a.recv, a.counts, a.displs)
			},
			func(c cm, x ctxt, a A) error {
				return c.Alltoallv(x, a.out(), a.sendCounts, a.sendDispls, a.in(), a.counts, a.displs)
			},
			func(c cm, a A) req {
				return c.Ialltoallv(a.out(), a.sendCounts, a.sendDispls, a.in(), a.counts, a.displs)
			},
			func(c cm, a A) per {
				return c.AlltoallvInit(a.out(), a.sendCounts, a.sendDispls, a.in(), a.counts, a.displs)
			}},
	}
}

// spellings are the ways in which perform can call a form. They match each
// other: ranks need not use the same.
const spellings = 4

// perform calls f in one of its spellings and waits for it.
func (f form[T]) perform(ctx context.Context, c *comm.Comm, spelling int, a *args[T]) error {
	switch spelling % spellings {
	case 0:
		return f.slices(ctx, c, a)
	case 1:
		return f.buffers(c, ctx, a)
	case 2:
		_, err := f.start(c, a).Wait(ctx)
		return err
	}
	_, err := f.persistent(c, a).Start().Wait(ctx)
	return err
}
