package comm

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"gompi/comm/internal/call"
	"gompi/comm/internal/engine"
	"gompi/internal/mem"
	"gompi/internal/seg"
)

// Alloc returns n zeroed elements, aligned for vector code, in memory that the
// ranks of c reach most cheaply (MPI_Alloc_mem, MPI_Win_allocate_shared). Where several
// ranks of c share a host, each one's part lies in the host's symmetric heap, and
// collectives whose vectors all lie there, from 1 KiB on, read and write them in
// place instead of copying them through other memory; not so scans, Gatherv, Scatterv,
// Alltoallv, exchanges in place, and reductions that keep an order. Over several hosts
// Bcast, Reduce and Allreduce read them in place inside each host, from 256 KiB on.
// Vectors from the Alloc of one Comm are as good in collectives of another that has some
// itself, and long messages are copied only once between ranks of a host if one side's
// vector is from the Alloc of any Comm. A rank alone on its host gets ordinary memory,
// with the same rules, and so do all where nothing is shared.
//
// It is collective: all ranks of c call it with the same T and n, in the order of
// their collectives. Where one rank cannot have as much, all get ErrMemory. Free gives
// the memory back, and so does Close: it must not be touched after either. The system
// zeroes what Alloc takes, at the speed of memory; so take once what is used again and
// again. Memory that ranks share is on huge pages, as far as it fills any of 2 MiB, where
// the kernel makes such (Linux 6.1 or newer).
func Alloc[T Scalar](ctx context.Context, c *Comm, n int) ([]T, error) {
	b, err := c.Alloc(ctx, mem.TypeOf[T](), n)
	if err != nil {
		return nil, err
	}
	return mem.Slice[T](b), nil
}

// Free gives back what Alloc of c returned; s is that very slice, and is not used any
// more. It is collective, as Alloc.
func Free[T Scalar](ctx context.Context, c *Comm, s []T) error { return c.Free(ctx, Of(s)) }

// A loan is what Alloc has handed out and Free has not taken back.
type loan struct {
	b   Buffer
	off int // in this rank's heap, -1 for ordinary memory
}

type loans struct {
	mu  sync.Mutex
	all []loan
}

func (l *loans) add(x loan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, x)
}

// index returns where the loan of b is, -1 if there is none. The lock is held.
func (l *loans) index(b Buffer) int {
	return slices.IndexFunc(l.all, func(x loan) bool { return mem.Same(x.b, b) })
}

// find returns the loan of b.
func (l *loans) find(b Buffer) (x loan, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.index(b); i >= 0 {
		return l.all[i], true
	}
	return x, false
}

// remove removes one loan of b: empty ones are all the same.
func (l *loans) remove(b Buffer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.index(b); i >= 0 {
		l.all = slices.Delete(l.all, i, i+1)
	}
}

// Alloc is the function Alloc for Buffers, of host memory.
func (c *Comm) Alloc(ctx context.Context, t Type, n int) (Buffer, error) {
	x, err := c.lend(ctx, t, n)
	if err != nil {
		return Buffer{}, c.fault(call.Alloc.String(), -1, err)
	}
	if c.loans.add(x); x.off >= 0 {
		c.lent(1)
	}
	return x.b, nil
}

// Free is the function Free for Buffers.
func (c *Comm) Free(ctx context.Context, b Buffer) error {
	return c.fault(call.Free.String(), -1, c.takeBack(ctx, b))
}

func (c *Comm) takeBack(ctx context.Context, b Buffer) error {
	x, ok := c.loans.find(b)
	if !ok {
		return badArgument("%d elements of %v: want what Alloc of %s has returned, once", b.Len(), b.Type(), c.name)
	}
	o := call.Call{Fingerprint: call.Fingerprint{Kind: call.Free, Type: b.Type(), Count: int64(b.Len())}}
	if err := c.turns.run(ctx, c, &o); err != nil {
		return err
	}
	if c.loans.remove(b); x.off >= 0 {
		c.lent(-1)
		c.giveBack(x)
	}
	return nil
}

// giveBack gives back what lies in this rank's heap. While a peer may still be writing
// there what was given up, it is kept: the next to have it would find what it has not
// written.
func (c *Comm) giveBack(x loan) {
	if !c.memory.free(c.e, x) {
		c.memory.late.add(x)
	}
}

// free frees x in the heap unless a peer may still write there.
func (m *hostMemory) free(e *engine.Engine, x loan) bool {
	over := !e.Strays(x.b)
	if over {
		m.heap.Free(x.off)
	}
	return over
}

// returnLoans gives back what is left when c is closed. Unless it was calm, peers may
// still write there, because c was broken or a collective under way: then it waits until
// they have left.
func (c *Comm) returnLoans(calm bool) {
	c.loans.mu.Lock()
	defer c.loans.mu.Unlock()
	left := c.loans.all
	c.loans.all = nil
	free := func() {
		for _, x := range left {
			if x.off >= 0 {
				c.giveBack(x)
			}
		}
	}
	if c.block == 0 || calm {
		free()
	} else {
		c.memory.pool.WhenVacant(c.block, free)
	}
}

func (c *Comm) lend(ctx context.Context, t Type, n int) (loan, error) {
	if !t.Valid() || n < 0 || n > math.MaxInt/t.Size() {
		return loan{}, badArgument("%d elements of %v: want 0 or more, and no more than there are addresses", n, t)
	}
	f := call.Fingerprint{Kind: call.Alloc, Type: t, Count: int64(n)}
	switch {
	case n == 0 || c.exec.Room == nil && c.exec.Hier == nil:
		if _, err := c.tell(ctx, f, 0); err != nil {
			return loan{}, err
		}
		return ordinary(t, n)
	case c.exec.Hier != nil && c.exec.Hier.Room() == nil:
		return c.lendAlone(ctx, f, n*t.Size())
	}
	return c.lendShared(ctx, f, n*t.Size())
}

// lent tells that the ranks of c have n more allocations in their heaps.
func (c *Comm) lent(n int) {
	c.exec.Paths.Lend(n)
}

func ordinary(t Type, n int) (loan, error) {
	b, err := mem.Host.Alloc(t, n)
	return loan{b, -1}, err
}

// lendShared lends memory that all ranks of a host see. Each first takes a place in its
// heap and tells how much memory it finds; only if there is enough for all do they claim
// it, and tell whether they could.
func (c *Comm) lendShared(ctx context.Context, f call.Fingerprint, size int) (x loan, err error) {
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
	all, err := c.tell(ctx, f, answer(refused), limit.Left)
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
	return loan{mem.HostBytes(f.Type, int(f.Count), bytes), off}, nil
}

// lendAlone is lendShared for a rank that shares its host with none: it has its memory
// if the others can have theirs.
func (c *Comm) lendAlone(ctx context.Context, f call.Fingerprint, size int) (loan, error) {
	all, err := c.tell(ctx, f, yes, math.MaxInt64)
	if err == nil {
		err = c.enough(size, all, seg.MemoryLimit(), nil)
	}
	if err == nil {
		err = c.allClaim(ctx, f, size, nil)
	}
	if err != nil {
		return loan{}, err
	}
	return ordinary(f.Type, int(f.Count))
}

// The answers of ranks that are asked whether they can.
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

// tell tells all ranks some words and returns those of all, by rank.
func (c *Comm) tell(ctx context.Context, f call.Fingerprint, mine ...int64) ([]int64, error) {
	all := make([]int64, len(mine)*c.Size())
	o := new(call.Call).Allgather(Of(mine), Of(all))
	o.Fingerprint = f
	err := c.turns.run(ctx, c, o)
	return all, err
}

// enough says why size bytes cannot be had on each rank, from what all have told: of
// each, whether it has a place for them, and how many bytes it finds left on its host.
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

// allClaim tells all ranks whether this one has claimed its memory: refused is why it
// could not. It fails unless all have.
func (c *Comm) allClaim(ctx context.Context, f call.Fingerprint, size int, refused error) error {
	all, err := c.tell(ctx, f, answer(refused))
	if err != nil {
		return err
	}
	if r := slices.Index(all, no); r >= 0 {
		return c.refusal(r, size, refused)
	}
	return nil
}

// refusal is the error of all ranks when rank r cannot have size bytes; why is this
// rank's own reason, if it cannot either.
func (c *Comm) refusal(r, size int, why error) error {
	if why != nil {
		return fmt.Errorf("%w: %s: %w", ErrMemory, seg.Amount(int64(size)), why)
	}
	return fmt.Errorf("%w: rank %d has no %s", ErrMemory, r, seg.Amount(int64(size)))
}
