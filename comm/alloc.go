package comm

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"gompi/comm/internal/call"
	"gompi/comm/internal/message"
	"gompi/internal/mem"
	"gompi/internal/seg"
)

// Alloc returns n zeroed elements in memory that the other ranks of this host read and write in
// place (MPI_Alloc_mem, MPI_Win_allocate_shared). It makes these faster:
//
//   - Collectives of 1 KiB and more (32 KiB where ranks outnumber processors) on one host whose
//     vectors are all from Alloc: they copy nothing through other memory. Not so scans, Gatherv,
//     Scatterv, Alltoallv, in-place alltoalls, and reductions that keep an order.
//   - Bcast, Reduce and Allreduce of 256 KiB and more on several hosts, inside each host.
//   - Long messages inside a host, if one side's vector is from Alloc: they are copied once.
//   - Long messages over RDMA, if the receiver's vector is from Alloc: they are copied once, or not
//     at all if the sender's is, too. Alloc registers the memory, which locks it.
//
// Memory from another Comm's Alloc works too. In a collective, the Comm that is called must have
// memory from Alloc itself. A rank alone on its host gets memory that no other rank sees, and so do
// all ranks where hosts share no memory.
//
// Alloc is collective: all ranks of c call it with the same T and n, in the order of their
// collectives. If one rank cannot have the memory, all get ErrMemory. Free and Close give it back:
// it must not be touched after either. The system zeroes the memory, so take once what is used
// again and again. It is on huge pages of 2 MiB where the kernel makes such (Linux 6.1 or newer).
func Alloc[T Scalar](ctx context.Context, c *Comm, n int) ([]T, error) {
	b, err := c.Alloc(ctx, mem.TypeOf[T](), n)
	if err != nil {
		return nil, err
	}
	return mem.Slice[T](b), nil
}

// Free gives back the slice s, which Alloc of c has returned. It is collective, as Alloc.
func Free[T Scalar](ctx context.Context, c *Comm, s []T) error { return c.Free(ctx, Of(s)) }

// An allocation is memory that Alloc has returned and Free has not taken back.
type allocation struct {
	b      Buffer
	off    int    // in this rank's heap, -1 for ordinary memory
	mapped []byte // ordinary memory outside Go's heap, nil if there is none
}

// transportable reports whether x can be registered with transports.
func (x *allocation) transportable() bool { return x.off >= 0 || x.mapped != nil }

type allocations struct {
	mu  sync.Mutex
	all []allocation
}

func (l *allocations) add(x allocation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, x)
}

// index returns where the allocation of b is, -1 if there is none. The lock is held.
func (l *allocations) index(b Buffer) int {
	return slices.IndexFunc(l.all, func(x allocation) bool { return mem.Same(x.b, b) })
}

// find returns the allocation of b.
func (l *allocations) find(b Buffer) (x allocation, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.index(b); i >= 0 {
		return l.all[i], true
	}
	return x, false
}

// take removes one allocation of b and returns it: empty ones are all the same.
func (l *allocations) take(b Buffer) (x allocation, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.index(b); i >= 0 {
		x, ok = l.all[i], true
		l.all = slices.Delete(l.all, i, i+1)
	}
	return x, ok
}

// Alloc is the function Alloc for Buffers, of host memory.
func (c *Comm) Alloc(ctx context.Context, t Type, n int) (Buffer, error) {
	x, err := c.allocate(ctx, t, n)
	if err != nil {
		return Buffer{}, c.fault(call.Alloc.String(), -1, err)
	}
	if x.transportable() { // before Close can free it
		if err := c.e.Mover.Register(x.b); err != nil {
			c.log.Debug("memory goes the way of other memory", "rank", c.Rank(), "comm", c.name, "bytes", x.b.Size(), "err", err)
		}
	}
	if c.allocations.add(x); x.off >= 0 {
		c.countAllocations(1)
	}
	return x.b, nil
}

// Free is the function Free for Buffers.
func (c *Comm) Free(ctx context.Context, b Buffer) error {
	return c.fault(call.Free.String(), -1, c.deallocate(ctx, b))
}

func (c *Comm) deallocate(ctx context.Context, b Buffer) error {
	x, ok := c.allocations.find(b)
	if !ok {
		return badArgument("%d elements of %v: want what Alloc of %s has returned, once", b.Len(), b.Type(), c.name)
	}
	o := call.Call{Fingerprint: call.Fingerprint{Kind: call.Free, Type: b.Type(), Count: int64(b.Len())}}
	if err := c.ops.run(ctx, c, &o); err != nil {
		return err
	}
	if c.allocations.take(b); x.off >= 0 {
		c.countAllocations(-1)
	}
	c.freeWhenUnused(x)
	return nil
}

// freeWhenUnused frees x. While a peer may still be writing there, after an operation that failed,
// x is kept: its next user would find what that peer writes.
func (c *Comm) freeWhenUnused(x allocation) {
	switch {
	case x.mapped != nil:
		c.mapped.add(x)
		c.sweepMapped()
	case x.off >= 0 && !c.memory.free(c.e, x):
		c.memory.late.add(x)
	}
}

// sweepMapped frees the mapped memory that was given back and is unused by now.
func (p *process) sweepMapped() {
	p.mapped.mu.Lock()
	defer p.mapped.mu.Unlock()
	p.mapped.all = slices.DeleteFunc(p.mapped.all, func(x allocation) bool {
		over := unused(p.e, x)
		if over {
			unmap(x.mapped)
		}
		return over
	})
}

// unused reports whether neither peers nor transports use x any more.
func unused(e *message.Engine, x allocation) bool {
	return !e.Mover.MayBeWritten(x.b) && e.Mover.Deregister(x.b)
}

// free frees x in the heap if it is unused.
func (m *hostMemory) free(e *message.Engine, x allocation) bool {
	over := unused(e, x)
	if over {
		m.heap.Free(x.off)
	}
	return over
}

// freeAllocations frees the memory that is left when c is closed. safe means that no peer writes
// there any more. Else, because c was broken or a collective under way, it waits until the peers
// have left.
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

func (c *Comm) allocate(ctx context.Context, t Type, n int) (allocation, error) {
	if !t.Valid() || n < 0 || n > math.MaxInt/t.Size() {
		return allocation{}, badArgument("%d elements of %v: want 0 or more, and no more than there are addresses", n, t)
	}
	f := call.Fingerprint{Kind: call.Alloc, Type: t, Count: int64(n)}
	switch {
	case n == 0 || c.exec.Shared == nil && c.exec.Hier == nil:
		if _, err := c.exchange(ctx, f, 0); err != nil {
			return allocation{}, err
		}
		return c.ordinary(t, n)
	case c.exec.Hier != nil && c.exec.Hier.Alone():
		return c.allocateAlone(ctx, f, n*t.Size())
	}
	return c.allocateShared(ctx, f, n*t.Size())
}

// countAllocations notes that the ranks of c have n more allocations in their heaps.
func (c *Comm) countAllocations(n int) {
	c.exec.Paths.AddAllocations(n)
}

// ordinary allocates memory that no other rank sees. Transports that register memory get it
// outside Go's heap.
func (c *Comm) ordinary(t Type, n int) (allocation, error) {
	if n > 0 && c.e.Mover.Registers() {
		c.sweepMapped()
		if bytes, err := mapped(n * t.Size()); err == nil {
			return allocation{mem.HostBytes(t, n, bytes), -1, bytes}, nil
		}
	}
	b, err := mem.Host.Alloc(t, n)
	return allocation{b, -1, nil}, err
}

// allocateShared allocates memory that all ranks of a host see. Each rank first reserves a place in
// its heap and reports how much memory the host has left. Only if there is enough for all do they
// claim it, and report whether they could.
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

// allocateAlone is allocateShared for a rank that is alone on its host: it allocates ordinary
// memory, if the other ranks can have theirs.
func (c *Comm) allocateAlone(ctx context.Context, f call.Fingerprint, size int) (allocation, error) {
	all, err := c.exchange(ctx, f, yes, math.MaxInt64)
	if err == nil {
		err = c.enough(size, all, seg.MemoryLimit(), nil)
	}
	if err == nil {
		err = c.allClaim(ctx, f, size, nil)
	}
	if err != nil {
		return allocation{}, err
	}
	return c.ordinary(f.Type, int(f.Count))
}

// A rank's answers to whether it can have the memory.
const (
	no = iota
	yes
)

func answer(refused error) int64 {
	if refused != nil {
		return no
	}
	return yes
}

// exchange exchanges some words with all ranks, and returns those of all, by rank.
func (c *Comm) exchange(ctx context.Context, f call.Fingerprint, mine ...int64) ([]int64, error) {
	all := make([]int64, len(mine)*c.Size())
	o := new(call.Call).Allgather(Of(mine), Of(all))
	o.Fingerprint = f
	err := c.ops.run(ctx, c, o)
	return all, err
}

// enough returns why not every rank can have size bytes, nil if all can. all has two words of each
// rank: whether its heap has a place, and how many bytes its host has left.
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

// allClaim reports to all ranks whether this one has claimed its memory, and fails unless all have.
// refused is why this one could not.
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

// refusal returns the error of all ranks when rank r cannot have size bytes. why is this rank's own
// reason, if it cannot either.
func (c *Comm) refusal(r, size int, why error) error {
	if why != nil {
		return fmt.Errorf("%w: %s: %w", ErrMemory, seg.Amount(int64(size)), why)
	}
	return fmt.Errorf("%w: rank %d has no %s", ErrMemory, r, seg.Amount(int64(size)))
}
