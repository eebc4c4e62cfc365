// Package shmcoll does collectives among the ranks of one host through shared memory. A rank stores
// what the others need in a bounce buffer of its own, and the others read it there. No message is
// sent. Package shmsync tells a rank when data has arrived, and when its space may be reused.
//
//	short.go        what programs call most with a few bytes
//	transfer.go     blocks that go from rank to rank: all other collectives but the following
//	allreduce.go    a long allreduce
//	singlecopy.go   vectors that ranks read and write where they lie
//	reach.go        how they reach them: in the symmetric heap, or through the kernel
//	trial.go        whether that is faster, which the ranks try now and then
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

	cross   CrossMemory // nil where nobody can reach memory that only another maps
	asked   bool        // whether all can
	crosses bool        // they can
	trials  *trials     // nil before the first
	own     [2][]byte   // this member's vectors, while others may reach them
	known   [2]span     // of its vectors of the last such call

	// Scratch, reused to save allocations.
	fetched [][]byte     // by member, nil before it is used
	srcs    []mem.Buffer // by member
	dsts    []mem.Buffer
	places  []places // by member
	blocks  call.Scratch
	spares  [][]byte // by height in the combination tree
}

// New returns the Comm of a Team, whose members have the given heaps, if any, and reach other
// memory by cross, if not nil.
func New(t shmsync.Team, heaps [][]byte, cross CrossMemory, paths *path.Selector) *Comm {
	n := t.Size()
	return &Comm{Team: t, paths: paths, heaps: heaps, reach: mem.Distance{From: paths.FarFrom()}, cross: cross, fetched: make([][]byte, n),
		srcs: make([]mem.Buffer, n), dsts: make([]mem.Buffer, n), places: make([]places, n)}
}

// places are where a member's send and recv lie.
type places [2]symheap.Place

// Run runs o, which all members have called, along p. Begin is called before.
func (c *Comm) Run(p *path.Path, o *call.Call) error {
	err := c.along(p, o)
	if err != nil {
		c.Retract()
	}
	return err
}

func (c *Comm) along(p *path.Path, o *call.Call) error {
	if p.Ask == path.SharedHeap {
		if done, err := c.singleCopy(o, false); done || err != nil {
			return err
		}
		p = p.Otherwise
	}
	if p.Ask == path.CrossMemory {
		if can, err := c.reachable(); err != nil {
			return err
		} else if can {
			return c.try(p, o)
		}
		p = p.Otherwise
	}
	return c.copied(p, o)
}

// copied runs o along p, through bounce buffers.
func (c *Comm) copied(p *path.Path, o *call.Call) error {
	if is, err := c.short(p, o); is {
		return err
	}
	switch {
	case o.Kind == call.Allreduce:
		return c.allreduceLong(p, o.Send, o.Recv, o.Op)
	case o.Kind.As() == call.Barrier:
		return c.Barrier()
	}
	var t transfer
	o.Transfer(&t.Transfer, c.Me(), c.Size(), c.keepsOrder(o.Op), &c.blocks)
	if p.Ask == path.BlockLengths {
		var err error
		sent, expected, longest := t.Lengths()
		if t.Longest, err = c.AgreeLengths(sent, expected, longest, t.Lo); err != nil {
			return err
		}
		t.compared, p = true, c.paths.Sized(o.Kind, t.Longest*t.Size)
	}
	return c.run(p, &t)
}
