// Package shmcoll does collectives among the ranks of one host through shared memory. A rank stores
// what the others need in a bounce buffer of its own, and the others read it there. No message is
// sent. Package shmsync tells a rank when data has arrived, and when its space may be reused.
//
//	transfer.go     blocks that go from rank to rank: all collectives but the following
//	allreduce.go    an allreduce, short and long
//	singlecopy.go   vectors from comm.Alloc, which all ranks read and write in place
//	window.go       the same, chunk by chunk, for the hierarchical collectives of package hier
//	order.go        the order in which operands are combined
//	nontemporal.go  which stores are non-temporal
package shmcoll

import (
	"gompi/comm/internal/call"
	"gompi/comm/internal/path"
	"gompi/comm/internal/shmsync"
	"gompi/comm/internal/symheap"
	"gompi/internal/mem"
)

// A Comm does the collectives of one member, a rank of a communicator whose ranks share memory. It
// does one at a time, and is not for concurrent use.
type Comm struct {
	shmsync.Team
	paths *path.Selector
	heaps [][]byte     // by member
	reach mem.Distance // to the members that read what this one stores

	// Scratch, reused to save allocations.
	srcs   []mem.Buffer // by member
	dsts   []mem.Buffer
	places []places // by member
	blocks call.Scratch
	spares [][]byte // by height in the combination tree
}

// New returns the Comm of a Team, whose members have the given heaps, if any.
func New(t shmsync.Team, heaps [][]byte, paths *path.Selector) *Comm {
	n := t.Size()
	return &Comm{Team: t, paths: paths, heaps: heaps, srcs: make([]mem.Buffer, n), dsts: make([]mem.Buffer, n), places: make([]places, n)}
}

// places are where a member's send and recv lie in its heap.
type places [2]symheap.Place

// Run runs o, which all members have called, along p. Begin is called before.
func (c *Comm) Run(p *path.Path, o *call.Call) error {
	if p.Ask == path.SharedHeap {
		if done, err := c.singleCopy(o); done || err != nil {
			return err
		}
		p = p.Otherwise
	}
	switch {
	case o.Kind == call.Allreduce && p.Algorithm == path.OneStep:
		return c.allreduceShort(o.Send, o.Recv, o.Op)
	case o.Kind == call.Allreduce:
		return c.allreduceLong(p, o.Send, o.Recv, o.Op)
	case o.Kind.As() == call.Barrier:
		return c.Barrier()
	}
	var t transfer
	o.Transfer(&t.Transfer, c.Me(), c.Size(), c.keepsOrder(o.Op), &c.blocks)
	if p.Ask == path.BlockLengths {
		var err error
		sent, expected := t.Lengths()
		if t.Longest, err = c.AgreeLengths(sent, expected, t.Lo, t.Size); err != nil {
			return err
		}
		t.compared, p = true, c.paths.Sized(o.Kind, t.Longest*t.Size)
	}
	return c.run(p, &t)
}
