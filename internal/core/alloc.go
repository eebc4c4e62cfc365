package core

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/memory"
	"gompi/internal/mem"
	"gompi/internal/seg"
)

// Alloc returns n zeroed elements in memory that the other ranks of this host read and write in
// place. Alloc is collective: if any rank cannot have the memory, all get ErrMemory.
func (c *Comm) Alloc(ctx context.Context, t mem.Type, n int) (mem.Buffer, error) {
	x, err := c.allocate(ctx, t, n)
	if err != nil {
		return mem.Buffer{}, c.fault(calls.Alloc.String(), -1, err)
	}
	c.register(x) // before Close can free the memory
	if c.allocations.Add(x); x.Heap >= 0 {
		c.exec.Paths.AddAllocations(1)
	}
	return x.Buffer, nil
}

// register registers x with transports, if x can be.
func (c *Comm) register(x memory.Allocation) {
	if err := c.memory.Register(x); err != nil {
		c.log.Debug("memory goes the way of other memory", "rank", c.Rank(), "comm", c.name, "bytes", x.Size(),
			"err", err)
	}
}

// Free gives back b, which Alloc of c has returned. Free is collective.
func (c *Comm) Free(ctx context.Context, b mem.Buffer) error {
	return c.fault(calls.Free.String(), -1, c.deallocate(ctx, b))
}

func (c *Comm) deallocate(ctx context.Context, b mem.Buffer) error {
	x, ok := c.allocations.Find(b)
	if !ok {
		return BadArgument("%d elements of %v: want what Alloc of %s has returned, once", b.Len(), b.Type(), c.name)
	}
	o := call.Call{Fingerprint: call.Fingerprint{Kind: calls.Free, Type: b.Type(), Count: int64(b.Len())}}
	if err := c.ops.Run(ctx, &o); err != nil {
		return err
	}
	if c.allocations.Take(b); x.Heap >= 0 {
		c.exec.Paths.AddAllocations(-1)
	}
	c.memory.Free(x)
	return nil
}

// freeAllocations frees the remaining memory when c is closed. safe means that no peer writes there
// any more. Otherwise c was broken or a collective was under way, and the memory is freed after the
// peers have left.
func (c *Comm) freeAllocations(safe bool) {
	left := c.allocations.TakeAll()
	free := func() {
		for _, x := range left {
			c.memory.Free(x)
		}
	}
	if c.block == 0 || safe {
		free()
	} else {
		c.memory.Host.Pool.WhenVacant(c.block, free)
	}
}

// checkElements refuses a number of elements to allocate.
func checkElements(t mem.Type, n int) error {
	if !t.Valid() || n < 0 || n > math.MaxInt/t.Size() {
		return BadArgument("%d elements of %v: want 0 or more, and no more than there are addresses", n, t)
	}
	return nil
}

func (c *Comm) allocate(ctx context.Context, t mem.Type, n int) (memory.Allocation, error) {
	if err := checkElements(t, n); err != nil {
		return memory.Allocation{}, err
	}
	f := call.Fingerprint{Kind: calls.Alloc, Type: t, Count: int64(n)}
	switch {
	case n == 0:
		if _, err := c.exchange(ctx, f, 0); err != nil {
			return memory.Allocation{}, err
		}
		return c.memory.Ordinary(t, 0)
	case c.exec.Shared == nil && (c.exec.Hier == nil || c.exec.Hier.Alone()):
		return c.allocateAlone(ctx, f, n*t.Size())
	}
	return c.allocateShared(ctx, f, n*t.Size())
}

// allocateShared allocates memory that all ranks of a host see. Each rank first reserves a place
// in its heap and reports how much memory the host has left. If there is enough for all, the
// ranks claim the memory, and report whether they could.
func (c *Comm) allocateShared(ctx context.Context, f call.Fingerprint, size int) (x memory.Allocation, err error) {
	host := c.memory.Host
	host.Sweep(c.e)
	heap, limit := host.Heap, host.Limit()
	off, refused := heap.Reserve(size)
	if refused == nil {
		defer func() {
			if err != nil {
				heap.Free(off)
			}
		}()
	}
	all, err := c.exchange(ctx, f, answer(refused), limit.Left)
	if err != nil {
		return x, err
	}
	if err := c.enough(size, all, limit, refused); err != nil {
		return x, err
	}
	bytes, refused := heap.Claim(off)
	if err := c.allClaim(ctx, f, size, refused); err != nil {
		return x, err
	}
	return memory.Allocation{Buffer: mem.HostBytes(f.Type, int(f.Count), bytes), Heap: off}, nil
}

// allocateAlone is allocateShared for a rank that shares no memory with others: it allocates
// ordinary memory, if all ranks can have theirs.
func (c *Comm) allocateAlone(ctx context.Context, f call.Fingerprint, size int) (memory.Allocation, error) {
	limit := seg.MemoryLimit()
	all, err := c.exchange(ctx, f, yes, limit.Left)
	if err == nil {
		err = c.enough(size, all, limit, nil)
	}
	if err == nil {
		err = c.allClaim(ctx, f, size, nil)
	}
	if err != nil {
		return memory.Allocation{}, err
	}
	return c.memory.Ordinary(f.Type, int(f.Count))
}

const no, yes = 0, 1 // a rank's answers about the memory

func answer(refused error) int64 {
	if refused != nil {
		return no
	}
	return yes
}

// exchange allgathers some words, and returns the words of all ranks, by rank.
func (c *Comm) exchange(ctx context.Context, f call.Fingerprint, mine ...int64) ([]int64, error) {
	all := make([]int64, len(mine)*c.Size())
	o := new(call.Call).Allgather(mem.Of(mine), mem.Of(all))
	o.Fingerprint = f
	err := c.ops.Run(ctx, o)
	return all, err
}

// enough returns an error unless every rank can have size bytes. all has two words of each rank:
// whether its heap has a place, and the bytes that its host has left.
func (c *Comm) enough(size int, all []int64, limit seg.Limit, refused error) error {
	for r := range c.Size() {
		if all[2*r] == no {
			return c.refusal(r, size, refused)
		}
	}
	for _, ranks := range c.hosts() {
		least := slices.MinFunc(ranks, func(a, b int) int { return cmp.Compare(all[2*a+1], all[2*b+1]) })
		if left := all[2*least+1]; int64(size) > left/int64(len(ranks)) {
			return fmt.Errorf("%w: %d ranks want %s each, rank %d finds %s (this one %v)",
				ErrMemory, len(ranks), seg.Amount(int64(size)), least, seg.Amount(left), limit)
		}
	}
	return nil
}

// allClaim reports to all ranks whether this rank has claimed its memory, and fails unless all
// have. refused is the reason why this rank could not.
func (c *Comm) allClaim(ctx context.Context, f call.Fingerprint, size int, refused error) error {
	all, err := c.exchange(ctx, f, answer(refused))
	if err != nil {
		return err
	}
	if r := slices.Index(all, no); r >= 0 {
		return c.refusal(r, size, refused)
	}
	return nil
}

// refusal returns the error of all ranks when rank r cannot have size bytes. why is this rank's
// own reason, if refused too.
func (c *Comm) refusal(r, size int, why error) error {
	if why != nil {
		return fmt.Errorf("%w: %s: %w", ErrMemory, seg.Amount(int64(size)), why)
	}
	return fmt.Errorf("%w: rank %d has no %s", ErrMemory, r, seg.Amount(int64(size)))
}

// AllocLocal is Alloc for this rank alone, without messages. The memory belongs to the process.
// FreeLocal gives it back, or Close of the last Comm does.
func (c *Comm) AllocLocal(t mem.Type, n int) (mem.Buffer, error) {
	err := checkElements(t, n)
	var x memory.Allocation
	if err == nil {
		x, err = c.memory.Alloc(t, n)
	}
	if err != nil {
		return mem.Buffer{}, c.fault("alloc_local", -1, err)
	}
	c.register(x)
	c.memory.Local.Add(x)
	return x.Buffer, nil
}

// FreeLocal gives back b, which AllocLocal of any of this process's Comms has returned.
func (c *Comm) FreeLocal(b mem.Buffer) error {
	x, ok := c.memory.Local.Take(b)
	if !ok {
		err := BadArgument("%d elements of %v: want what AllocLocal has returned, once", b.Len(), b.Type())
		return c.fault("free_local", -1, err)
	}
	if x.Heap < 0 || !c.suspect.Load() {
		c.memory.Free(x)
	}
	return nil
}
