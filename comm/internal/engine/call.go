package engine

import (
	"fmt"

	"gompi/internal/mem"
	"gompi/internal/seg"
)

// A Collective names a collective operation, as the flight recorder does. It travels
// in frames, so the values are part of the wire format.
type Collective seg.Kind

// The collective operations.
const (
	NoCollective       = Collective(seg.NoKind)
	Barrier            = Collective(seg.Barrier)
	Bcast              = Collective(seg.Bcast)
	Reduce             = Collective(seg.Reduce)
	Allreduce          = Collective(seg.Allreduce)
	ReduceScatter      = Collective(seg.ReduceScatter)
	ReduceScatterBlock = Collective(seg.ReduceScatterBlock)
	Allgather          = Collective(seg.Allgather)
	Allgatherv         = Collective(seg.Allgatherv)
	Gather             = Collective(seg.Gather)
	Gatherv            = Collective(seg.Gatherv)
	Scatter            = Collective(seg.Scatter)
	Scatterv           = Collective(seg.Scatterv)
	Alltoall           = Collective(seg.Alltoall)
	Alltoallv          = Collective(seg.Alltoallv)
	Scan               = Collective(seg.Scan)
	Exscan             = Collective(seg.Exscan)
	Dup                = Collective(seg.Dup)
	Split              = Collective(seg.Split)
	Create             = Collective(seg.Create)
	Alloc              = Collective(seg.Alloc)
	Free               = Collective(seg.Free)
)

func (k Collective) String() string { return seg.Kind(k).String() }

// A Call is what MPI requires to be equal on all ranks of one collective. A
// field that need not be equal (the count of a v form) stays zero. Every frame
// of the collective carries its sender's Call, so that a mismatch is noticed
// whichever ranks disagree.
type Call struct {
	Kind   Collective
	Type   mem.Type
	Op     mem.Op
	Root   int32
	Digest uint32 // of counts that must be equal; only where there is no Root
	Count  int64
}

// Words returns c as the two words that carry it, of which the first is not 0. c is
// only pointed to: copied right after it was made, it would stall the processor.
func (c *Call) Words() (a, b uint64) {
	return uint64(c.Kind) | uint64(c.Type)<<8 | uint64(c.Op)<<16 | uint64(uint32(c.Root)|c.Digest)<<32, uint64(c.Count)
}

// CallOf returns the Call of what Words returned.
func CallOf(a, b uint64) Call {
	c := Call{Kind: Collective(a), Type: mem.Type(a >> 8), Op: mem.Op(a >> 16), Count: int64(b)}
	if c.Kind.Rooted() {
		c.Root = int32(a >> 32)
	} else {
		c.Digest = uint32(a >> 32)
	}
	return c
}

// Rooted reports whether Root means anything.
func (k Collective) Rooted() bool { return seg.Kind(k).Rooted() }

// Reduces reports whether an operator belongs to the collective.
func (k Collective) Reduces() bool {
	switch k {
	case Reduce, Allreduce, ReduceScatter, ReduceScatterBlock, Scan, Exscan:
		return true
	}
	return false
}

// String describes c as a user would write it: "allreduce(1024 float32, sum)".
func (c Call) String() string {
	s := c.Kind.String() + "("
	switch {
	case c.Type == mem.NoType:
	case c.Count > 0 || !c.Kind.countless():
		s += fmt.Sprintf("%d %v", c.Count, c.Type)
	default:
		s += c.Type.String()
	}
	if c.Op != mem.NoOp {
		s += ", " + c.Op.String()
	}
	if c.Kind.Rooted() {
		s += fmt.Sprintf(", root %d", c.Root)
	}
	if c.Digest != 0 {
		s += fmt.Sprintf(", counts #%08x", c.Digest)
	}
	return s + ")"
}

// countless reports whether the count may differ between ranks.
func (k Collective) countless() bool {
	return k == Gatherv || k == Scatterv || k == Alltoallv
}
