//go:build linux && cgo

package main

// #include "shim/core.h"
import "C"

import (
	"context"
	"errors"
	"unsafe"

	"gompi/internal/calls"
	"gompi/internal/core"
	"gompi/internal/core/call"
	"gompi/internal/mem"
)

// run makes C's call o on c. Package calls knows the layout of the buffers of its kind on each rank,
// and whether it has an operator. The engine checks that the buffers fit each other.
func (c *communicator) run(o *C.struct_gompi_call) error {
	k := calls.Kind(o.kind)
	x := call.Arguments{Root: int(o.root)}
	if calls.Table[k].Recv.Layout != calls.Absent {
		c.set(&x, k, o)
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
func (c *communicator) set(x *call.Arguments, k calls.Kind, o *C.struct_gompi_call) {
	if k.Reduces() {
		x.Op = call.Op{Kind: mem.Op(o.op)}
	}
	x.SendCounts, x.RecvCounts = c.list(o.send_counts), c.list(o.recv_counts)
	row, root, t := &calls.Table[k], c.Rank() == x.Root, mem.Type(o._type)
	if row.Send.On(root) != calls.Unused {
		x.Send = buffer(o.send, c.length(k, row.Send.Layout, int(o.n), x.SendCounts, x.RecvCounts), t)
	}
	if row.Recv.On(root) != calls.Unused {
		x.Recv = buffer(o.recv, c.length(k, row.Recv.Layout, int(o.n), x.RecvCounts, x.SendCounts), t)
	}
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

// length returns the number of elements of a buffer of a call, by its layout: n, n for each rank, or
// the sum of its counts. A buffer with the block of this rank alone has the length that the counts of
// the other buffer say.
func (c *communicator) length(k calls.Kind, in calls.Layout, n int, counts, others []int) int {
	switch {
	case in == calls.Even:
		return n * c.Size()
	case in >= calls.Counted:
		n = 0
		for _, m := range counts {
			n += max(m, 0) // the engine refuses negative counts
		}
	case k.Counted():
		n = max(others[c.Rank()], 0)
	}
	return n
}

// buffer returns the n elements at p, in C's memory, without a copy.
func buffer(p unsafe.Pointer, n int, t mem.Type) mem.Buffer {
	return mem.HostBytes(t, n, unsafe.Slice((*byte)(p), n*t.Size()))
}
