package shmcoll

import (
	"gompi/comm/internal/call"
	"gompi/internal/mem"
)

// A Window is vectors that are open to all members, for callers that have more to do with them than
// one collective: until Close, members combine and fetch what they want of each other's, and tell
// what they have made, in whatever order they need. No member stores to another's.
//
// OpenWindow orders what members read of sends after what their owners did before. A piece is stored
// before Made tells of it, and fetched after; so an owner that has fetched nothing yet has told of
// nothing that depends on it. Close is a barrier: no member changes what another still reads.
type Window struct {
	c           *Comm
	first       uint64 // the step of the first piece; there is one for each, in which no head is filled
	nonTemporal bool   // what is fetched is stored so
}

// OpenWindow opens this member's vectors of n bytes to the others for the pieces of a
// collective: send if they combine it, recv if they fetch from it, and else none. It
// reports whether all that were opened can be reached; if not, there is no Window. Until it is
// closed the members do no other collective on memory from Alloc.
func (c *Comm) OpenWindow(send, recv mem.Buffer, n, pieces int) (w Window, open bool, err error) {
	if open, err = c.tellPlaces(places{c.locate(send), c.locate(recv)}); open {
		w = Window{c: c, first: c.Next(pieces), nonTemporal: c.paths.NonTemporal(n)}
	}
	return w, open, err
}

// Fold combines the sends of all members, of which this one's is own, from element lo
// of their vectors on, into dst.
func (w *Window) Fold(dst, own mem.Buffer, lo int, op call.Op) error {
	c, size := w.c, own.Type().Size()
	for j := range c.srcs {
		if c.srcs[j] = own; j != c.Me() {
			c.srcs[j] = mem.HostBytes(own.Type(), own.Len(), c.vector(j, sends, lo*size, own.Size()))
		}
	}
	return c.combine(op, dst, 0, c.Size(), false)
}

// Made tells that this member's recv holds the pieces up to i. It may do so again.
func (w *Window) Made(i int) { w.c.ResultReady(w.first + uint64(i)) }

// Fetch copies what a member's recv has from element lo on to dst, when that member
// has made piece i.
func (w *Window) Fetch(member, i int, dst mem.Buffer, lo int) error {
	if err := w.c.AwaitResult(member, w.first+uint64(i)); err != nil {
		return err
	}
	src := w.c.vector(member, recvs, lo*dst.Type().Size(), dst.Size())
	copyShared(dst.HostSlice(), src, w.nonTemporal)
	return nil
}

// Close returns when all members want nothing of each other's vectors any more.
func (w *Window) Close() error {
	w.c.Consumed(w.c.Last())
	return w.c.Barrier()
}
