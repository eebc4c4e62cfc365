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

// An extent says how long a buffer of a collective is.
type extent uint8

const (
	none   extent = iota
	block         // n elements
	blocks        // n for each rank
	parts         // counts[i] for each rank, at displs[i]
	part          // what parts has for this rank
)

// A form is what C's arguments of a collective are.
type form struct {
	send, recv extent
	onlyRoot   side // the buffer that only the root has
	reduces    bool
}

type side uint8

const (
	neither side = iota
	sends
	receives
)

var forms = [...]form{
	C.GOMPI_BARRIER:              {},
	C.GOMPI_BCAST:                {recv: block},
	C.GOMPI_REDUCE:               {send: block, recv: block, onlyRoot: receives, reduces: true},
	C.GOMPI_ALLREDUCE:            {send: block, recv: block, reduces: true},
	C.GOMPI_REDUCE_SCATTER_BLOCK: {send: blocks, recv: block, reduces: true},
	C.GOMPI_REDUCE_SCATTER:       {send: parts, recv: part, reduces: true},
	C.GOMPI_ALLGATHER:            {send: block, recv: blocks},
	C.GOMPI_ALLGATHERV:           {send: part, recv: parts},
	C.GOMPI_GATHER:               {send: block, recv: blocks, onlyRoot: receives},
	C.GOMPI_GATHERV:              {send: block, recv: parts, onlyRoot: receives},
	C.GOMPI_SCATTER:              {send: blocks, recv: block, onlyRoot: sends},
	C.GOMPI_SCATTERV:             {send: parts, recv: block, onlyRoot: sends},
	C.GOMPI_ALLTOALL:             {send: blocks, recv: blocks},
	C.GOMPI_ALLTOALLV:            {send: parts, recv: parts},
	C.GOMPI_SCAN:                 {send: block, recv: block, reduces: true},
	C.GOMPI_EXSCAN:               {send: block, recv: block, reduces: true},
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
	counts, displs *C.int64_t
}

// run makes the call o of C on c.
func (c *communicator) run(o *C.struct_gompi_call) error {
	f := &forms[o.kind]
	var send, recv comm.Buffer
	if f.recv != none {
		t, err := elements(int(o._type))
		if err != nil {
			return err
		}
		if f.reduces && (o.op < 1 || int(o.op) >= len(ops)) {
			return wrong("op is %d: want one of gompi_op, 1 to %d", o.op, len(ops)-1)
		}
		root := c.Rank() == int(o.root)
		if f.onlyRoot != sends || root {
			send, err = c.buffer(f.send, o, t, vector{"send", o.send, o.send_counts, o.send_displs}, o.recv_counts)
		}
		if err == nil && (f.onlyRoot != receives || root) {
			recv, err = c.buffer(f.recv, o, t, vector{"recv", o.recv, o.recv_counts, o.recv_displs}, o.send_counts)
		}
		if err != nil {
			return err
		}
	}
	if o.background != 0 && c.apart {
		return c.performInBackground(o, send, recv)
	}
	ctx, cancel := c.context()
	defer cancel()
	return c.perform(ctx, o, send, recv)
}

// performInBackground performs o on a goroutine of its own, which wakes up sooner: one that C has
// called is bound to a thread, and waking it takes several switches of threads. On one host it
// gains nothing: gompi-bench ddp mlp, np=2, exposed 8.2 and 11.6 ms in two rounds with it, 8.3 and
// 8.0 without.
func (c *communicator) performInBackground(o *C.struct_gompi_call, send, recv comm.Buffer) error {
	ctx, cancel := c.within(context.Background()) // nothing is asked on another thread
	defer cancel()
	done := make(chan error, 1)
	go func() {
		err := errors.New("ended its goroutine")
		defer func() {
			if p := recover(); p != nil {
				err = panicked(p)
			}
			done <- err
		}()
		err = c.perform(comm.InBackground(ctx), o, send, recv)
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

// buffer returns a buffer of o. If it has one part, others are the counts of the parts that the
// other buffer has.
func (c *communicator) buffer(e extent, o *C.struct_gompi_call, t mem.Type, v vector, others *C.int64_t) (comm.Buffer, error) {
	n := uint64(o.n)
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
		counts := c.list(v.counts)
		if counts == nil {
			return comm.Buffer{}, wrong("the counts of %s are NULL: want %d", v.what, c.Size())
		}
		n = end(counts, c.list(v.displs))
	case part:
		counts := c.list(others)
		if counts == nil {
			return comm.Buffer{}, wrong("the counts are NULL: want %d", c.Size())
		}
		n = uint64(max(counts[c.Rank()], 0)) // comm refuses what is less
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

func (c *communicator) perform(ctx context.Context, o *C.struct_gompi_call, send, recv comm.Buffer) error {
	root := int(o.root)
	switch o.kind {
	case C.GOMPI_BARRIER:
		return c.Barrier(ctx)
	case C.GOMPI_BCAST:
		return c.Bcast(ctx, root, recv)
	case C.GOMPI_REDUCE:
		return c.Reduce(ctx, root, send, recv, ops[o.op])
	case C.GOMPI_ALLREDUCE:
		return c.Allreduce(ctx, send, recv, ops[o.op])
	case C.GOMPI_REDUCE_SCATTER_BLOCK:
		return c.ReduceScatterBlock(ctx, send, recv, ops[o.op])
	case C.GOMPI_REDUCE_SCATTER:
		return c.ReduceScatter(ctx, send, recv, c.list(o.send_counts), ops[o.op])
	case C.GOMPI_ALLGATHER:
		return c.Allgather(ctx, send, recv)
	case C.GOMPI_ALLGATHERV:
		return c.Allgatherv(ctx, send, recv, c.list(o.recv_counts), c.list(o.recv_displs))
	case C.GOMPI_GATHER:
		return c.Gather(ctx, root, send, recv)
	case C.GOMPI_GATHERV:
		return c.Gatherv(ctx, root, send, recv, c.list(o.recv_counts), c.list(o.recv_displs))
	case C.GOMPI_SCATTER:
		return c.Scatter(ctx, root, send, recv)
	case C.GOMPI_SCATTERV:
		return c.Scatterv(ctx, root, send, recv, c.list(o.send_counts), c.list(o.send_displs))
	case C.GOMPI_ALLTOALL:
		return c.Alltoall(ctx, send, recv)
	case C.GOMPI_ALLTOALLV:
		return c.Alltoallv(ctx, send, c.list(o.send_counts), c.list(o.send_displs), recv, c.list(o.recv_counts), c.list(o.recv_displs))
	case C.GOMPI_SCAN:
		return c.Scan(ctx, send, recv, ops[o.op])
	}
	return c.Exscan(ctx, send, recv, ops[o.op])
}
