package comm

import (
	"context"

	"gompi/internal/mem"
)

// Alloc returns n zeroed elements in memory that the other ranks of this host read and write in
// place (MPI_Alloc_mem, MPI_Win_allocate_shared). Such memory makes these operations faster:
//
//   - Collectives of 1 KiB and more (32 KiB if ranks outnumber processors) on one host whose
//     vectors are all from Alloc: they copy nothing through other memory. Not so scans, Gatherv,
//     Scatterv, Alltoallv, in-place alltoalls, and reductions that keep an order.
//   - Bcast, Reduce and Allreduce of 256 KiB and more on several hosts, inside each host.
//   - Long messages inside a host, if one side's vector is from Alloc: they are copied once.
//   - Long messages over RDMA, if the receiver's vector is from Alloc: they are copied once, or not
//     at all if the sender's is, too. Alloc registers the memory, which locks it.
//
// Memory from another Comm's Alloc works too. In a collective, the Comm of the call must have
// memory from Alloc itself. A rank alone on its host gets memory that no other rank sees, and so do
// all ranks if hosts share no memory.
//
// Alloc is collective: all ranks of c call Alloc with the same T and n, in the order of their
// collectives. If one rank cannot have the memory, all get ErrMemory. Free and Close give the
// memory back: it must not be touched afterwards. The system zeroes the memory, so allocate reused
// memory only once. The kernel backs it with huge pages of 2 MiB if possible (Linux 6.1 or newer).
func Alloc[T Scalar](ctx context.Context, c *Comm, n int) ([]T, error) {
	b, err := c.Alloc(ctx, mem.TypeOf[T](), n)
	if err != nil {
		return nil, err
	}
	return mem.Slice[T](b), nil
}

// Free gives back the slice s, a result of Alloc of c. Free is collective, as Alloc.
func Free[T Scalar](ctx context.Context, c *Comm, s []T) error { return c.Free(ctx, Of(s)) }

// Alloc is the function Alloc for Buffers, of host memory.
func (c *Comm) Alloc(ctx context.Context, t Type, n int) (Buffer, error) {
	return c.core().Alloc(ctx, t, n)
}

// Free is the function Free for Buffers.
func (c *Comm) Free(ctx context.Context, b Buffer) error { return c.core().Free(ctx, b) }

// AllocLocal returns n zeroed elements of host memory as Alloc does, but for one rank alone:
// AllocLocal sends nothing, and other ranks need not call it, nor use the same n. It serves memory
// that comes and goes on one rank, like tensors.
//
// Other ranks read and write the memory only while its owner is inside a call with it: a
// collective, or a message until its request is complete. In a collective, the Comm of the call
// must have memory from its own Alloc, if only an element: so the ranks know that some vectors may
// lie in the heap. A child made by fork() shares the memory: the parent sees its writes.
//
// The memory belongs to the process. FreeLocal gives back the same n elements; the last Comm to
// close gives back all. Once a collective has failed on this rank, memory passed to FreeLocal is
// not used again: other ranks may still access it. ErrMemory means that the heap or the host has no
// room. Both methods are for concurrent use.
func (c *Comm) AllocLocal(t Type, n int) (Buffer, error) { return c.core().AllocLocal(t, n) }

// FreeLocal gives back b, a result of AllocLocal of any Comm of this process.
func (c *Comm) FreeLocal(b Buffer) error { return c.core().FreeLocal(b) }
