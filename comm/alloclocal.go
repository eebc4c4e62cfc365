package comm

import (
	"fmt"
	"math"

	"gompi/internal/mem"
	"gompi/internal/seg"
)

// AllocLocal returns n zeroed elements of host memory as Alloc does, but for one rank alone: it
// sends nothing, and other ranks need not call it, nor with the same n. So it is for memory that
// comes and goes on one rank, like tensors.
//
// Others read and write it only while its owner is inside a call with it: a collective, or a
// message until its request is complete. In a collective, the Comm that is called must have memory
// from its own Alloc, if only an element: that is how the ranks know that some vectors may lie in
// the heap. A child made by fork() shares the memory: what it writes there its parent sees.
//
// The memory belongs to the process. It is given back by FreeLocal, which takes the same n
// elements, or with the last Comm. Once a collective has failed on this rank, what FreeLocal takes
// is not used again: other ranks may still be in it. ErrMemory means that the heap or the host has
// no room. Both are for concurrent use.
func (c *Comm) AllocLocal(t Type, n int) (Buffer, error) {
	x, err := c.allocateLocal(t, n)
	if err != nil {
		return Buffer{}, c.fault("alloc_local", -1, err)
	}
	if x.transportable() {
		if err := c.e.Mover.Register(x.b); err != nil {
			c.log.Debug("memory goes the way of other memory", "rank", c.Rank(), "bytes", x.b.Size(), "err", err)
		}
	}
	c.local.add(x)
	return x.b, nil
}

// FreeLocal gives back b, which AllocLocal of any of this process's Comms has returned.
func (c *Comm) FreeLocal(b Buffer) error {
	x, ok := c.local.take(b)
	if !ok {
		return c.fault("free_local", -1, badArgument("%d elements of %v: want what AllocLocal has returned, once", b.Len(), b.Type()))
	}
	if x.off < 0 || !c.suspect.Load() {
		c.freeWhenUnused(x)
	}
	return nil
}

func (c *Comm) allocateLocal(t Type, n int) (allocation, error) {
	if !t.Valid() || n < 0 || n > math.MaxInt/t.Size() {
		return allocation{}, badArgument("%d elements of %v: want 0 or more, and no more than there are addresses", n, t)
	}
	if n == 0 || c.memory == nil {
		return c.ordinary(t, n)
	}
	c.memory.sweep(c.e)
	size := n * t.Size()
	if limit := c.memory.limit(); int64(size) > limit.Left {
		return allocation{}, fmt.Errorf("%w: this rank wants %s, %v", ErrMemory, seg.Amount(int64(size)), limit)
	}
	heap := c.memory.heap
	off, err := heap.Reserve(size)
	if err != nil {
		return allocation{}, fmt.Errorf("%w: %w", ErrMemory, err)
	}
	bytes, err := heap.Claim(off)
	if err != nil {
		heap.Free(off)
		return allocation{}, fmt.Errorf("%w: %w", ErrMemory, err)
	}
	return allocation{mem.HostBytes(t, n, bytes), off, nil}, nil
}
