// Package shmcoll does the collectives of ranks that share a host's memory, by direct access: a
// rank stores what the others need where they see it, and they read it from there. No message is
// sent. When something is there, and when its place may be filled again, is up to package shmsync.
//
//	transfer.go     what goes from rank to rank in blocks: all collectives but the following
//	allreduce.go    an allreduce, short and long
//	singlecopy.go   vectors from comm.Alloc, which ranks read and write where they lie
//	window.go       the same for a hierarchy, piece by piece (package hier)
//	order.go        in which order operands are combined
//	nontemporal.go  which stores bypass the caches
package shmcoll

import (
	"gompi/comm/internal/call"
	"gompi/comm/internal/path"
	"gompi/comm/internal/shmsync"
	"gompi/comm/internal/symheap"
	"gompi/internal/mem"
)

// A Comm is the ranks of a communicator that share memory, as one of them sees them. It does
// collectives one at a time. Its methods are not for concurrent use.
type Comm struct {
	shmsync.Team
	paths *path.Selector
	heaps [][]byte     // by member
	reach mem.Distance // to those who read what this member stores

	// Scratch, kept to save allocations.
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

// places tells where a member's send and recv lie in its heap.
type places [2]symheap.Place

// Run does o, which all members have called, as p says. Begin comes before.
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
