package core

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"syscall"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/message"
	"gompi/internal/mem"
	"gompi/internal/seg"
)

// An allocation is memory that Alloc has returned and Free has not taken back.
type allocation struct {
	b      mem.Buffer
	off    int    // in this rank's heap, -1 for ordinary memory
	mapped []byte // ordinary memory outside Go's heap, nil if there is none
}

type allocations struct {
	mu  sync.Mutex
	all []allocation
}

func (l *allocations) add(x allocation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, x)
}

// index returns the index of the allocation of b, -1 if there is none. The caller holds the lock.
func (l *allocations) index(b mem.Buffer) int {
	return slices.IndexFunc(l.all, func(x allocation) bool { return mem.Same(x.b, b) })
}

// find returns the allocation of b.
func (l *allocations) find(b mem.Buffer) (x allocation, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.index(b); i >= 0 {
		return l.all[i], true
	}
	return x, false
}

// take removes an allocation of b and returns the allocation. Any empty allocation serves an empty
// b.
func (l *allocations) take(b mem.Buffer) (x allocation, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.index(b); i >= 0 {
		x, ok = l.all[i], true
		l.all = slices.Delete(l.all, i, i+1)
	}
	return x, ok
}

// Alloc returns n zeroed elements in memory that the other ranks of this host read and write in
// place. Alloc is collective: if any rank cannot have the memory, all get ErrMemory.
func (c *Comm) Alloc(ctx context.Context, t mem.Type, n int) (mem.Buffer, error) {
	x, err := c.allocate(ctx, t, n)
	if err != nil {
		return mem.Buffer{}, c.fault(calls.Alloc.String(), -1, err)
	}
	c.register(x) // before Close can free the memory
	if c.allocations.add(x); x.off >= 0 {
		c.exec.Paths.AddAllocations(1)
	}
	return x.b, nil
}

// register registers x with transports, if x can be.
func (c *Comm) register(x allocation) {
	if x.off < 0 && x.mapped == nil {
		return
	}
	if err := c.e.Mover.Register(x.b); err != nil {
		c.log.Debug("memory goes the way of other memory", "rank", c.Rank(), "comm", c.name, "bytes", x.b.Size(),
			"err", err)
	}
}

// Free gives back b, which Alloc of c has returned. Free is collective.
func (c *Comm) Free(ctx context.Context, b mem.Buffer) error {
	return c.fault(calls.Free.String(), -1, c.deallocate(ctx, b))
}

func (c *Comm) deallocate(ctx context.Context, b mem.Buffer) error {
	x, ok := c.allocations.find(b)
	if !ok {
		return BadArgument("%d elements of %v: want what Alloc of %s has returned, once", b.Len(), b.Type(), c.name)
	}
	o := call.Call{Fingerprint: call.Fingerprint{Kind: calls.Free, Type: b.Type(), Count: int64(b.Len())}}
	if err := c.ops.Run(ctx, &o); err != nil {
		return err
	}
	if c.allocations.take(b); x.off >= 0 {
		c.exec.Paths.AddAllocations(-1)
	}
	c.freeWhenUnused(x)
	return nil
}

// freeWhenUnused frees x when no peer can write to x any more. After a failed operation a peer may
// still write, and would else write into the next allocation.
func (c *Comm) freeWhenUnused(x allocation) {
	switch {
	case x.mapped != nil:
		c.mapped.add(x)
		c.sweepMapped()
	case x.off >= 0 && !c.mapping().free(c.e, x):
		c.mapping().late.add(x)
	}
}

// sweepMapped frees the mapped memory that was given back and is unused by now.
func (p *process) sweepMapped() {
	p.mapped.mu.Lock()
	defer p.mapped.mu.Unlock()
	p.mapped.all = slices.DeleteFunc(p.mapped.all, func(x allocation) bool {
		over := unused(p.e, x)
		if over {
			_ = syscall.Munmap(x.mapped) // fails only for other memory
		}
		return over
	})
}

// unused reports whether neither peers nor transports use x any more.
func unused(e *message.Engine, x allocation) bool {
	return !e.Mover.MayBeWritten(x.b) && e.Mover.Deregister(x.b)
}

// free frees x in the heap if unused.
func (m *hostMemory) free(e *message.Engine, x allocation) bool {
	over := unused(e, x)
	if over {
		m.heap.Free(x.off)
	}
	return over
}

// freeAllocations frees the remaining memory when c is closed. safe means that no peer writes there
// any more. Otherwise c was broken or a collective was under way, and the memory is freed after the
// peers have left.
func (c *Comm) freeAllocations(safe bool) {
	c.allocations.mu.Lock()
	defer c.allocations.mu.Unlock()
	left := c.allocations.all
	c.allocations.all = nil
	free := func() {
		for _, x := range left {
			c.freeWhenUnused(x)
		}
	}
	if c.block == 0 || safe {
		free()
	} else {
		c.memory.pool.WhenVacant(c.block, free)
	}
}

// checkElements refuses a number of elements to allocate.
func checkElements(t mem.Type, n int) error {
	if !t.Valid() || n < 0 || n > math.MaxInt/t.Size() {
		return BadArgument("%d elements of %v: want 0 or more, and no more than there are addresses", n, t)
	}
	return nil
}

func (c *Comm) allocate(ctx context.Context, t mem.Type, n int) (allocation, error) {
	if err := checkElements(t, n); err != nil {
		return allocation{}, err
	}
	f := call.Fingerprint{Kind: calls.Alloc, Type: t, Count: int64(n)}
	switch {
	case n == 0:
		if _, err := c.exchange(ctx, f, 0); err != nil {
			return allocation{}, err
		}
		return c.ordinary(t, 0)
	case c.exec.Shared == nil && (c.exec.Hier == nil || c.exec.Hier.Alone()):
		return c.allocateAlone(ctx, f, n*t.Size())
	}
	return c.allocateShared(ctx, f, n*t.Size())
}

// leastProbed is the least size for which ordinary first asks the kernel whether it has the memory:
// Go ends the process if the kernel refuses memory for its heap.
const leastProbed = 64 << 20

// ordinary allocates memory that no other rank sees. Transports that register memory get memory
// outside Go's heap.
func (c *Comm) ordinary(t mem.Type, n int) (allocation, error) {
	registers := n > 0 && c.e.Mover.Registers()
	if size := n * t.Size(); registers || size >= leastProbed {
		c.sweepMapped()
		const access, private = syscall.PROT_READ | syscall.PROT_WRITE, syscall.MAP_PRIVATE | syscall.MAP_ANON
		bytes, err := syscall.Mmap(-1, 0, size, access, private)
		switch {
		case err != nil:
			return allocation{}, fmt.Errorf("%w: %s: %w", ErrMemory, seg.Amount(int64(size)), err)
		case registers:
			return allocation{mem.HostBytes(t, n, bytes), -1, bytes}, nil
		}
		_ = syscall.Munmap(bytes)
	}
	b, err := mem.Host.Alloc(t, n)
	return allocation{b, -1, nil}, err
}

// allocateShared allocates memory that all ranks of a host see. Each rank first reserves a place
// in its heap and reports how much memory the host has left. If there is enough for all, the
// ranks claim the memory, and report whether they could.
func (c *Comm) allocateShared(ctx context.Context, f call.Fingerprint, size int) (x allocation, err error) {
	c.memory.sweep(c.e)
	heap, limit := c.memory.heap, c.memory.limit()
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
	return allocation{mem.HostBytes(f.Type, int(f.Count), bytes), off, nil}, nil
}

// allocateAlone is allocateShared for a rank that shares no memory with others: it allocates
// ordinary memory, if all ranks can have theirs.
func (c *Comm) allocateAlone(ctx context.Context, f call.Fingerprint, size int) (allocation, error) {
	limit := seg.MemoryLimit()
	all, err := c.exchange(ctx, f, yes, limit.Left)
	if err == nil {
		err = c.enough(size, all, limit, nil)
	}
	if err == nil {
		err = c.allClaim(ctx, f, size, nil)
	}
	if err != nil {
		return allocation{}, err
	}
	return c.ordinary(f.Type, int(f.Count))
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
	x, err := c.allocateLocal(t, n)
	if err != nil {
		return mem.Buffer{}, c.fault("alloc_local", -1, err)
	}
	c.register(x)
	c.local.add(x)
	return x.b, nil
}

// FreeLocal gives back b, which AllocLocal of any of this process's Comms has returned.
func (c *Comm) FreeLocal(b mem.Buffer) error {
	x, ok := c.local.take(b)
	if !ok {
		err := BadArgument("%d elements of %v: want what AllocLocal has returned, once", b.Len(), b.Type())
		return c.fault("free_local", -1, err)
	}
	if x.off < 0 || !c.suspect.Load() {
		c.freeWhenUnused(x)
	}
	return nil
}

func (c *Comm) allocateLocal(t mem.Type, n int) (allocation, error) {
	if err := checkElements(t, n); err != nil {
		return allocation{}, err
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
