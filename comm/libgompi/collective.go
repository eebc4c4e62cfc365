//go:build linux && cgo

package main

// #include "shim/core.h"
import "C"

import (
	"context"
	"errors"
	"math"
	"unsafe"

	"gompi/comm"
	"gompi/internal/mem"
)

// An extent specifies how long a buffer of a collective is.
type extent uint8

const (
	none   extent = iota
	block         // n elements
	blocks        // n for each rank
	parts         // counts[i] for each rank, at displs[i]
	part          // what parts has for this rank
)

// A collective is what C's arguments of one mean, and the call of comm that they become. comm
// checks that the buffers fit each other.
type collective struct {
	send, recv extent
	onlyRoot   side // the buffer that only the root has
	reduces    bool
	call       func(x arguments) error
}

type side uint8

const (
	neither side = iota
	sends
	receives
)

// arguments are those of comm.
type arguments struct {
	*communicator
	ctx                    context.Context
	send, recv             comm.Buffer
	root                   int
	op                     comm.Op
	sendCounts, sendDispls []int
	recvCounts, recvDispls []int
}

var collectives = [...]collective{
	C.GOMPI_BARRIER: {call: func(x arguments) error { return x.Barrier(x.ctx) }},
	C.GOMPI_BCAST:   {recv: block, call: func(x arguments) error { return x.Bcast(x.ctx, x.root, x.recv) }},
	C.GOMPI_REDUCE: {send: block, recv: block, onlyRoot: receives, reduces: true,
		call: func(x arguments) error { return x.Reduce(x.ctx, x.root, x.send, x.recv, x.op) }},
	C.GOMPI_ALLREDUCE: {send: block, recv: block, reduces: true,
		call: func(x arguments) error { return x.Allreduce(x.ctx, x.send, x.recv, x.op) }},
	C.GOMPI_REDUCE_SCATTER_BLOCK: {send: blocks, recv: block, reduces: true,
		call: func(x arguments) error { return x.ReduceScatterBlock(x.ctx, x.send, x.recv, x.op) }},
	C.GOMPI_REDUCE_SCATTER: {send: parts, recv: part, reduces: true,
		call: func(x arguments) error { return x.ReduceScatter(x.ctx, x.send, x.recv, x.sendCounts, x.op) }},
	C.GOMPI_ALLGATHER: {send: block, recv: blocks,
		call: func(x arguments) error { return x.Allgather(x.ctx, x.send, x.recv) }},
	C.GOMPI_ALLGATHERV: {send: part, recv: parts,
		call: func(x arguments) error { return x.Allgatherv(x.ctx, x.send, x.recv, x.recvCounts, x.recvDispls) }},
	C.GOMPI_GATHER: {send: block, recv: blocks, onlyRoot: receives,
		call: func(x arguments) error { return x.Gather(x.ctx, x.root, x.send, x.recv) }},
	C.GOMPI_GATHERV: {send: block, recv: parts, onlyRoot: receives,
		call: func(x arguments) error { return x.Gatherv(x.ctx, x.root, x.send, x.recv, x.recvCounts, x.recvDispls) }},
	C.GOMPI_SCATTER: {send: blocks, recv: block, onlyRoot: sends,
		call: func(x arguments) error { return x.Scatter(x.ctx, x.root, x.send, x.recv) }},
	C.GOMPI_SCATTERV: {send: parts, recv: block, onlyRoot: sends,
		call: func(x arguments) error { return x.Scatterv(x.ctx, x.root, x.send, x.recv, x.sendCounts, x.sendDispls) }},
	C.GOMPI_ALLTOALL: {send: blocks, recv: blocks,
		call: func(x arguments) error { return x.Alltoall(x.ctx, x.send, x.recv) }},
	C.GOMPI_ALLTOALLV: {send: parts, recv: parts,
		call: func(x arguments) error {
			return x.Alltoallv(x.ctx, x.send, x.sendCounts, x.sendDispls, x.recv, x.recvCounts, x.recvDispls)
		}},
	C.GOMPI_SCAN: {send: block, recv: block, reduces: true,
		call: func(x arguments) error { return x.Scan(x.ctx, x.send, x.recv, x.op) }},
	C.GOMPI_EXSCAN: {send: block, recv: block, reduces: true,
		call: func(x arguments) error { return x.Exscan(x.ctx, x.send, x.recv, x.op) }},
}

// ops are the operators, by C's numbers.
var ops = [...]comm.Op{
	C.GOMPI_SUM: comm.Sum, C.GOMPI_PROD: comm.Prod, C.GOMPI_AVG: comm.Avg, C.GOMPI_MIN: comm.Min, C.GOMPI_MAX: comm.Max,
	C.GOMPI_LAND: comm.LAnd, C.GOMPI_LOR: comm.LOr, C.GOMPI_LXOR: comm.LXor,
	C.GOMPI_BAND: comm.BAnd, C.GOMPI_BOR: comm.BOr, C.GOMPI_BXOR: comm.BXor,
	C.GOMPI_MINLOC: comm.MinLoc, C.GOMPI_MAXLOC: comm.MaxLoc,
}

// A vector is what C says of a buffer.
type vector struct {
	what           string
	p              unsafe.Pointer
	counts, displs []int
}

// run makes the call o of C on c.
func (c *communicator) run(o *C.struct_gompi_call) error {
	f := &collectives[o.kind]
	x := arguments{communicator: c, root: int(o.root)}
	if f.recv != none {
		if err := x.set(f, o); err != nil {
			return err
		}
	}
	if o.background != 0 && c.apart {
		return x.callInBackground(f)
	}
	ctx, cancel := c.context()
	defer cancel()
	x.ctx = ctx
	return f.call(x)
}

// set sets x, but for its root and context, to what f says of o.
func (x *arguments) set(f *collective, o *C.struct_gompi_call) error {
	t, err := elements(int(o._type))
	if err != nil {
		return err
	}
	if f.reduces {
		if o.op < 1 || int(o.op) >= len(ops) {
			return wrong("op is %d: want one of gompi_op, 1 to %d", o.op, len(ops)-1)
		}
		x.op = ops[o.op]
	}
	x.sendCounts, x.sendDispls = x.list(o.send_counts), x.list(o.send_displs)
	x.recvCounts, x.recvDispls = x.list(o.recv_counts), x.list(o.recv_displs)
	root := x.Rank() == x.root
	if f.onlyRoot != sends || root {
		x.send, err = x.buffer(f.send, uint64(o.n), t, vector{"send", o.send, x.sendCounts, x.sendDispls}, x.recvCounts)
	}
	if err == nil && (f.onlyRoot != receives || root) {
		x.recv, err = x.buffer(f.recv, uint64(o.n), t, vector{"recv", o.recv, x.recvCounts, x.recvDispls}, x.sendCounts)
	}
	return err
}

// callInBackground calls f on a goroutine of its own, which wakes up sooner: one that C has called
// is bound to a thread, and waking it takes several switches of threads. On one host it gains
// nothing: gompi-bench ddp mlp, np=2, exposed 8.2 and 11.6 ms in two rounds with it, 8.3 and 8.0
// without.
func (x arguments) callInBackground(f *collective) error {
	ctx, cancel := x.within(context.Background()) // nothing is asked on another thread
	defer cancel()
	x.ctx = comm.InBackground(ctx)
	done := make(chan error, 1)
	go func() {
		err := errors.New("ended its goroutine")
		defer func() {
			if p := recover(); p != nil {
				err = panicked(p)
			}
			done <- err
		}()
		err = f.call(x)
	}()
	return <-done
}

// list returns the numbers for each rank at p, without copying them: Go's int is C's int64_t.
func (c *communicator) list(p *C.int64_t) []int {
	if p == nil {
		return nil
	}
	return unsafe.Slice((*int)(unsafe.Pointer(p)), c.Size())
}

// buffer returns a buffer. If it has one part, others are the counts of the parts that the other
// buffer has.
func (c *communicator) buffer(e extent, n uint64, t mem.Type, v vector, others []int) (comm.Buffer, error) {
	switch e {
	case block:
	case none:
		return comm.Buffer{}, nil
	case blocks:
		if n > maxBytes/uint64(c.Size()) {
			n = math.MaxUint64 // an error
		} else {
			n *= uint64(c.Size())
		}
	case parts:
		if v.counts == nil {
			return comm.Buffer{}, wrong("the counts of %s are NULL: want %d", v.what, c.Size())
		}
		n = end(v.counts, v.displs)
	case part:
		if others == nil {
			return comm.Buffer{}, wrong("the counts are NULL: want %d", c.Size())
		}
		n = uint64(max(others[c.Rank()], 0)) // comm refuses what is less
	}
	return buffer(v.what, v.p, n, t)
}

// end returns the element behind the last of all parts. Parts that cannot be do not count: comm
// refuses them.
func end(counts, displs []int) (end uint64) {
	at := 0
	for i, n := range counts {
		if displs != nil {
			at = displs[i]
		}
		if n < 0 || at < 0 || n > math.MaxInt-at {
			continue
		}
		at += n
		end = max(end, uint64(at))
	}
	return end
}
