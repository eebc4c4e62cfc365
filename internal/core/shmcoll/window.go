package shmcoll

import (
	"gompi/internal/core/call"
	"gompi/internal/mem"
)

// A Window opens the members' vectors to each other for several operations: until Close, members
// combine and fetch parts of each other's vectors in any order. No member stores to another's
// vector.
//
// OpenWindow orders reads of sends after their owners' earlier accesses. A chunk of a recv is
// stored before its owner calls Made, and Fetch reads the chunk later. Close is a barrier: no
// member changes a vector that another still reads.
type Window struct {
	c           *Collectives
	first       uint64 // the step of the first chunk; each chunk has a step, in which no head is filled
	nonTemporal bool   // fetched data is stored with non-temporal stores
}

// OpenWindow opens this member's vectors of n bytes to the others for the chunks of a collective:
// send if they combine it, recv if they fetch from it; either may be empty. open reports whether
// all vectors can be reached; if not, there is no Window. Until Close the members do no other
// collective of more than one step.
func (c *Collectives) OpenWindow(send, recv mem.Buffer, n, chunks int) (w Window, open bool, err error) {
	if open, err = c.exchangePlaces(places{c.locate(sends, send, false), c.locate(recvs, recv, false)}); open {
		w = Window{c: c, first: c.Next(chunks), nonTemporal: c.paths.NonTemporal(n)}
	}
	return w, open, err
}

// Fold combines the sends of all members, from element lo on, into dst. own is this member's
// operand.
func (w *Window) Fold(dst, own mem.Buffer, lo int, op call.Op) error {
	c, size := w.c, own.ElemSize()
	for j := range c.srcs {
		if c.srcs[j] = own; j != c.Me() {
			c.srcs[j] = mem.HostLike(own, own.Len(), c.at(spot{j, sends, lo * size}, own.Size()))
		}
	}
	return c.combine(op, dst, 0, c.Size(), false)
}

// Made reports to the others that this member's recv holds the chunks up to i. Repeated calls for
// the same chunk are allowed.
func (w *Window) Made(i int) { w.c.ResultReady(w.first + uint64(i)) }

// Fetch waits until a member's recv holds chunk i, and copies that recv, from element lo on, to
// dst.
func (w *Window) Fetch(member, i int, dst mem.Buffer, lo int) error {
	if err := w.c.AwaitResult(member, w.first+uint64(i)); err != nil {
		return err
	}
	src := w.c.at(spot{member, recvs, lo * dst.ElemSize()}, dst.Size())
	copyShared(dst.HostSlice(), src, w.nonTemporal)
	return nil
}

// Close returns when no member reads the vectors of others any more.
func (w *Window) Close() error {
	w.c.Consumed(w.c.Last())
	return w.c.Barrier()
}
