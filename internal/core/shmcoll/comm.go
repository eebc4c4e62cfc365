// Package shmcoll does collectives among the ranks of a host through shared memory. A rank stores
// its data for the others in a bounce buffer, from which the others read. No message is
// sent. Package shmsync has flags for when data has arrived, and when its space may be reused.
//
//	questions.go    the members' questions to each other before they follow a Path
//	short.go        the most frequent collectives, of a few bytes
//	transfer.go     blocks that go from rank to rank: all collectives except the following
//	reduce.go       a long allreduce or reduce
//	elements.go     functions over elements longer than a bounce buffer
//	singlecopy.go   vectors that ranks read and write in place
//	reach.go        how ranks reach them: in the symmetric heap, or through the kernel
//	choice.go       the copies to bounce buffers, or the kernel's, which the ranks choose
//	window.go       the same, chunk by chunk, for the hierarchical collectives of package hier
//	order.go        the order in which operands are combined
//	nontemporal.go  which stores are non-temporal
package shmcoll

import (
	"gompi/internal/core/call"
	"gompi/internal/core/path"
	"gompi/internal/core/shmsync"
	"gompi/internal/mem"
	"gompi/internal/seg"
)

// Collectives does the collectives of a member, a rank of a communicator whose ranks share
// memory. It does one at a time, and is not for concurrent use.
type Collectives struct {
	shmsync.Team
	paths *path.Selector
	heaps [][]byte // by member
	way   int      // of mem.Copies, by which the present call copies to bounce buffers
	large bool     // the present call copies to the large buffers

	cross   CrossMemory // nil where no member can reach memory that only another maps
	asked   bool        // whether all can
	crosses bool        // they can
	choices choices
	calls   int       // that would have used large buffers that were not claimed
	own     [2][]byte // this member's vectors, while others may reach them
	known   [2]span   // of its vectors of the last such call

	// Scratch, reused to save allocations.
	fetched [][]byte     // by member, nil before its first use
	srcs    []mem.Buffer // by member
	dsts    []mem.Buffer
	places  []places // by member
	blocks  call.Scratch
	spares  [][]byte // by height in the combination tree
}

// New returns the Collectives of a Team, whose members have the given heaps, if any, and reach
// other memory by cross, if not nil.
func New(t shmsync.Team, heaps [][]byte, cross CrossMemory, paths *path.Selector) *Collectives {
	n := t.Size()
	return &Collectives{Team: t, paths: paths, heaps: heaps, cross: cross,
		fetched: make([][]byte, n), srcs: make([]mem.Buffer, n), dsts: make([]mem.Buffer, n),
		places: make([]places, n)}
}

// places are where a member's send and recv lie.
type places [2]seg.Place

// Run runs o, which all members have called, along p. The caller has called Begin.
func (c *Collectives) Run(p *path.Path, o *call.Call) error {
	is, err := false, error(nil)
	if c.way, c.large = 0, false; p.Ask == path.Nothing {
		is, err = c.short(p, o)
	}
	if !is {
		err = c.follow(p, o)
	}
	if err != nil {
		c.Retract()
	}
	return err
}

// A run is the state left by the answers to the questions of a Path. A run has no pointer to the
// Call: a pointer would move the caller's Call to the heap.
type run struct {
	t        transfer // see transferOf
	compared bool     // the members' calls have been compared, in a step before
	chosen   bool     // the way has been chosen
	timing   timing
}

// follow runs o along p.
func (c *Collectives) follow(p *path.Path, o *call.Call) error {
	var r run
	p, err := c.resolve(p, o, &r)
	if err == nil && p.Chunk.Large {
		err = c.chooseCopy(p, o, &r)
	}
	if err == nil {
		err = c.execute(p, o, &r)
	}
	if err == nil {
		r.timing.end()
	}
	return err
}

// execute runs o along p, whose question has been answered.
func (c *Collectives) execute(p *path.Path, o *call.Call, r *run) error {
	chunk := p.Chunk
	switch {
	case !chunk.Large:
		c.large = false
	case !c.large:
		chunk = path.Chunk{Most: l2Chunk}
	case c.way == mem.NonTemporal:
		// Each chunk waits until its stores are done (np=2 far on an AMD EPYC 25/17, in chunks of
		// 16 and 32 KiB: allgather of 64 KiB 10.2 and 9.5 us, alltoall 11.0 and 9.6, allreduce 11.5
		// and 9.9).
		chunk.Least *= 2
	}
	switch p.Algorithm {
	case path.SingleCopy:
		return c.singleCopy(o, &r.t)
	case path.Rsag:
		return c.reduceLong(chunk, o, r.compared)
	case path.ByElement:
		return c.byElement(o)
	}
	if is, err := c.short(p, o); is {
		return err
	}
	t := c.transferOf(o, r)
	if t.compared, t.large = r.compared, c.large; p.Algorithm == path.OneStep {
		return c.transferInOneStep(t)
	}
	return c.transferInChunks(chunk, t)
}

// l2Chunk is the bytes of a chunk around the L2 buffers, of which half are filled ahead.
const l2Chunk = 16 << 10

// transferOf returns the transfer that o is.
func (c *Collectives) transferOf(o *call.Call, r *run) *transfer {
	if r.t.Size == 0 {
		o.Transfer(&r.t.Transfer, c.Me(), c.Size(), c.keepsOrder(o.Op), &c.blocks)
	}
	return &r.t
}
