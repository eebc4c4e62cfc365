//go:build linux && cgo

package main

// #include "shim/core.h"
import "C"

import (
	"context"
	"errors"
	"math"
	"unsafe"

	"gompi/internal/calls"
	"gompi/internal/core"
	"gompi/internal/core/call"
	"gompi/internal/mem"
)

// ops are the operators, by C's numbers.
var ops = [...]mem.Op{
	C.GOMPI_SUM: mem.Sum, C.GOMPI_PROD: mem.Prod, C.GOMPI_AVG: mem.Avg, C.GOMPI_MIN: mem.Min, C.GOMPI_MAX: mem.Max,
	C.GOMPI_LAND: mem.LAnd, C.GOMPI_LOR: mem.LOr, C.GOMPI_LXOR: mem.LXor,
	C.GOMPI_BAND: mem.BAnd, C.GOMPI_BOR: mem.BOr, C.GOMPI_BXOR: mem.BXor,
	C.GOMPI_MINLOC: mem.MinLoc, C.GOMPI_MAXLOC: mem.MaxLoc,
}

// A vector is C's description of a buffer.
type vector struct {
	what           string
	p              unsafe.Pointer
	counts, displs []int
}

// run makes C's call o on c. Package calls knows the layout of the buffers of its kind on each rank,
// and whether it has an operator. The engine checks that the buffers fit each other.
func (c *communicator) run(o *C.struct_gompi_call) error {
	k := calls.Kind(o.kind)
	x := call.Arguments{Root: int(o.root)}
	if calls.Table[k].Recv.Layout != calls.Absent {
		if err := c.set(&x, k, o); err != nil {
			return err
		}
	}
	at := bases(int64(o.place))
	if o.background != 0 && c.apart {
		return c.callInBackground(at.background, k, x)
	}
	ctx, cancel := c.within(at.checked)
	defer cancel()
	return c.Do(ctx, new(call.Call).Fill(k, &x))
}

// set fills in x, except its root, from the arguments of o, a call of kind k.
func (c *communicator) set(x *call.Arguments, k calls.Kind, o *C.struct_gompi_call) error {
	t, err := elements(int(o._type))
	if err != nil {
		return err
	}
	if k.Reduces() {
		if o.op < 1 || int(o.op) >= len(ops) {
			return wrong("op is %d: want one of gompi_op, 1 to %d", o.op, len(ops)-1)
		}
		x.Op = call.Op{Kind: ops[o.op]}
	}
	x.SendCounts, x.SendDispls = c.list(o.send_counts), c.list(o.send_displs)
	x.RecvCounts, x.RecvDispls = c.list(o.recv_counts), c.list(o.recv_displs)
	row, root := &calls.Table[k], c.Rank() == x.Root
	if row.Send.On(root) != calls.Unused {
		x.Send, err = c.buffer(k, row.Send.Layout, uint64(o.n), t, vector{"send", o.send, x.SendCounts, x.SendDispls},
			x.RecvCounts)
	}
	if err == nil && row.Recv.On(root) != calls.Unused {
		x.Recv, err = c.buffer(k, row.Recv.Layout, uint64(o.n), t, vector{"recv", o.recv, x.RecvCounts, x.RecvDispls},
			x.SendCounts)
	}
	return err
}

// callInBackground makes the call on a goroutine of its own, which wakes up sooner: a goroutine
// that C has called is bound to a thread, and its wake-up takes several switches of threads. On one
// host this gains nothing: gompi-bench ddp mlp, np=2, exposed 8.2 and 11.6 ms in two rounds with
// it, 8.3 and 8.0 without.
func (c *communicator) callInBackground(base context.Context, k calls.Kind, x call.Arguments) error {
	ctx, cancel := c.within(base) // check's function runs on C's thread alone
	defer cancel()
	ctx = core.InBackground(ctx)
	done := make(chan error, 1)
	go func() {
		err := errors.New("ended its goroutine")
		defer func() {
			if p := recover(); p != nil {
				err = panicked(p)
			}
			done <- err
		}()
		err = c.Do(ctx, new(call.Call).Fill(k, &x))
	}()
	return <-done
}

// list returns the numbers for each rank at p, without a copy: Go's int is C's int64_t.
func (c *communicator) list(p *C.int64_t) []int {
	if p == nil {
		return nil
	}
	return unsafe.Slice((*int)(unsafe.Pointer(p)), c.Size())
}

// buffer returns a buffer of a call, by its layout: n elements, n for each rank, or blocks with
// counts. If the layout has only this rank's block, its length is this rank's count in the other
// buffer (others).
func (c *communicator) buffer(k calls.Kind, in calls.Layout, n uint64, t mem.Type, v vector,
	others []int) (mem.Buffer, error) {
	switch {
	case in == calls.Even:
		if n > maxBytes/uint64(c.Size()) {
			n = math.MaxUint64 // more than maxBytes: buffer returns the error
		} else {
			n *= uint64(c.Size())
		}
	case in >= calls.Counted:
		if v.counts == nil {
			return mem.Buffer{}, wrong("the counts of %s are NULL: want %d", v.what, c.Size())
		}
		n = end(v.counts, v.displs)
	case k.Counted():
		if others == nil {
			return mem.Buffer{}, wrong("the counts are NULL: want %d", c.Size())
		}
		n = uint64(max(others[c.Rank()], 0)) // the engine refuses negative counts
	}
	return buffer(v.what, v.p, n, t)
}

// end returns the index behind the last element of all parts. Invalid parts do not count: the
// engine refuses them.
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
