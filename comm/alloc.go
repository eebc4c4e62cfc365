package comm

import (
	"context"

	"gompi/internal/mem"
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

// Alloc is the function Alloc for Buffers, of host memory.
func (c *Comm) Alloc(ctx context.Context, t Type, n int) (Buffer, error) {
	return c.core().Alloc(ctx, t, n)
}

// Free is the function Free for Buffers.
func (c *Comm) Free(ctx context.Context, b Buffer) error { return c.core().Free(ctx, b) }

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
func (c *Comm) AllocLocal(t Type, n int) (Buffer, error) { return c.core().AllocLocal(t, n) }

// FreeLocal gives back b, which AllocLocal of any of this process's Comms has returned.
func (c *Comm) FreeLocal(b Buffer) error { return c.core().FreeLocal(b) }
