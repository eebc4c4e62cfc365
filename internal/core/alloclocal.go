package core

import (
	"fmt"
	"math"

	"gompi/internal/core/message"
	"gompi/internal/mem"
	"gompi/internal/seg"
)

// AllocLocal is Alloc for this rank alone, without messages. The memory belongs to the process.
// FreeLocal gives it back, or Close of the last Comm does.
func (c *Comm) AllocLocal(t mem.Type, n int) (mem.Buffer, error) {
	x, err := c.allocateLocal(t, n)
	if err != nil {
		return mem.Buffer{}, c.fault("alloc_local", -1, err)
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
func (c *Comm) FreeLocal(b mem.Buffer) error {
	x, ok := c.local.take(b)
	if !ok {
		return c.fault("free_local", -1, BadArgument("%d elements of %v: want what AllocLocal has returned, once", b.Len(), b.Type()))
	}
	if x.off < 0 || !c.suspect.Load() {
		c.freeWhenUnused(x)
	}
	return nil
}

func (c *Comm) allocateLocal(t mem.Type, n int) (allocation, error) {
	if !t.Valid() || n < 0 || n > math.MaxInt/t.Size() {
		return allocation{}, BadArgument("%d elements of %v: want 0 or more, and no more than there are addresses", n, t)
	}
	if n > 0 && c.memory != nil {
		return c.memory.allocate(c.e, t, n)
	}
	if err := hasRoom(n*t.Size(), seg.MemoryLimit()); err != nil {
		return allocation{}, err
	}
	return c.ordinary(t, n)
}

// hasRoom returns an error if a host has fewer bytes left.
func hasRoom(size int, limit seg.Limit) error {
	if int64(size) > limit.Left {
		return fmt.Errorf("%w: this rank wants %s, %v", ErrMemory, seg.Amount(int64(size)), limit)
	}
	return nil
}

// allocate allocates n elements in the heap, without communication.
func (m *hostMemory) allocate(e *message.Engine, t mem.Type, n int) (allocation, error) {
	m.sweep(e)
	size := n * t.Size()
	if err := hasRoom(size, m.limit()); err != nil {
		return allocation{}, err
	}
	off, err := m.heap.Reserve(size)
	if err != nil {
		return allocation{}, fmt.Errorf("%w: %w", ErrMemory, err)
	}
	bytes, err := m.heap.Claim(off)
	if err != nil {
		m.heap.Free(off)
		return allocation{}, fmt.Errorf("%w: %w", ErrMemory, err)
	}
	return allocation{mem.HostBytes(t, n, bytes), off, nil}, nil
}
