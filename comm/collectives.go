package comm

import (
	"context"

	"gompi/internal/core/call"
	"gompi/internal/mem"
)

// The collectives over slices: the package comment explains blocking, and lists the arguments that
// must be the same on all ranks.

// Barrier returns when all ranks of c have called Barrier (MPI_Barrier).
func Barrier(ctx context.Context, c *Comm) error { return c.Barrier(ctx) }

// Bcast copies data of rank root to data of all ranks (MPI_Bcast); data has the same length on all
// ranks. It blocks until data is here or, at the root, until data may be changed, and does not wait
// for the arrival at other ranks.
func Bcast[T Scalar](ctx context.Context, c *Comm, root int, data []T) error {
	return c.Bcast(ctx, root, Of(data))
}

// Reduce combines the send of all ranks, element by element, into recv of rank root, which has the
// same length (MPI_Reduce). In place at the root.
func Reduce[T Scalar](ctx context.Context, c *Comm, root int, send, recv []T, op Op) error {
	return c.Reduce(ctx, root, Of(send), Of(recv), op)
}

// ReduceFunc is Reduce with a function: combine stores acc op in into acc, for all elements.
// combine must be associative; operands keep the order of the ranks, so combine need not commute.
// It runs on the caller's goroutine, must not keep its arguments, and may use other Comms than c.
// All ranks pass the same function: functions cannot be compared, so different functions give a
// wrong result, without an error. If combine panics or calls runtime.Goexit, c is broken on all
// ranks; a caller that recovers may use other Comms.
func ReduceFunc[T Scalar](ctx context.Context, c *Comm, root int, send, recv []T, combine func(acc, in []T)) error {
	return c.core().Do(ctx, new(call.Call).Reduce(root, Of(send), Of(recv), custom(combine)))
}

// Allreduce combines the send of all ranks, element by element, into recv of every rank, which has
// the same length (MPI_Allreduce). All ranks get the same bits. In place.
func Allreduce[T Scalar](ctx context.Context, c *Comm, send, recv []T, op Op) error {
	return c.Allreduce(ctx, Of(send), Of(recv), op)
}

// AllreduceFunc is Allreduce with a function, as ReduceFunc.
func AllreduceFunc[T Scalar](ctx context.Context, c *Comm, send, recv []T, combine func(acc, in []T)) error {
	return c.core().Do(ctx, new(call.Call).Allreduce(Of(send), Of(recv), custom(combine)))
}

// ReduceScatter combines the send of all ranks and gives each rank a block of the result: rank i
// gets the counts[i] elements after the blocks of the lower ranks (MPI_Reduce_scatter). counts is
// equal on all ranks. In place: recv is this rank's block of send, or begins where send begins; the
// rest of send is then scratch.
func ReduceScatter[T Scalar](ctx context.Context, c *Comm, send, recv []T, counts []int, op Op) error {
	return c.ReduceScatter(ctx, Of(send), Of(recv), counts, op)
}

// ReduceScatterBlock is ReduceScatter with equal blocks: send is Size() times as long as recv
// (MPI_Reduce_scatter_block).
func ReduceScatterBlock[T Scalar](ctx context.Context, c *Comm, send, recv []T, op Op) error {
	return c.ReduceScatterBlock(ctx, Of(send), Of(recv), op)
}

// Allgather puts the send of every rank, in rank order, into recv of every rank: recv is Size()
// times as long as send (MPI_Allgather). In place: send is this rank's block of recv.
func Allgather[T Scalar](ctx context.Context, c *Comm, send, recv []T) error {
	return c.Allgather(ctx, Of(send), Of(recv))
}

// Allgatherv is Allgather with blocks of counts[i] elements at displs[i] of recv; nil displs mean
// consecutive blocks (MPI_Allgatherv). counts is equal on all ranks.
func Allgatherv[T Scalar](ctx context.Context, c *Comm, send, recv []T, counts, displs []int) error {
	return c.Allgatherv(ctx, Of(send), Of(recv), counts, displs)
}

// Gather puts the send of every rank, in rank order, into recv of rank root, which is Size() times
// as long (MPI_Gather). In place at the root: send is its block of recv.
func Gather[T Scalar](ctx context.Context, c *Comm, root int, send, recv []T) error {
	return c.Gather(ctx, root, Of(send), Of(recv))
}

// Gatherv is Gather with blocks of counts[i] elements at displs[i] of recv, both of which only the
// root needs; nil displs mean consecutive blocks (MPI_Gatherv).
func Gatherv[T Scalar](ctx context.Context, c *Comm, root int, send, recv []T, counts, displs []int) error {
	return c.Gatherv(ctx, root, Of(send), Of(recv), counts, displs)
}

// Scatter gives rank i the i-th block of send of rank root: send is Size() times as long as recv
// (MPI_Scatter). In place at the root: recv is its block of send.
func Scatter[T Scalar](ctx context.Context, c *Comm, root int, send, recv []T) error {
	return c.Scatter(ctx, root, Of(send), Of(recv))
}

// Scatterv is Scatter with blocks of counts[i] elements at displs[i] of send, both of which only
// the root needs; nil displs mean consecutive blocks (MPI_Scatterv).
func Scatterv[T Scalar](ctx context.Context, c *Comm, root int, send, recv []T, counts, displs []int) error {
	return c.Scatterv(ctx, root, Of(send), Of(recv), counts, displs)
}

// Alltoall sends the i-th block of send to rank i, which stores the block in the sender's place of
// recv (MPI_Alltoall). send and recv have Size() equal blocks. In place.
func Alltoall[T Scalar](ctx context.Context, c *Comm, send, recv []T) error {
	return c.Alltoall(ctx, Of(send), Of(recv))
}

// Alltoallv is Alltoall with blocks of any length: sendCounts[i] elements at sendDispls[i] of send
// go to rank i, and counts[i] elements from rank i go to displs[i] of recv (MPI_Alltoallv). nil
// displacements mean consecutive blocks, here and in all calls with displacements. The displacement
// of an empty block means nothing.
func Alltoallv[T Scalar](ctx context.Context, c *Comm, send []T, sendCounts, sendDispls []int, recv []T, counts,
	displs []int) error {
	return c.Alltoallv(ctx, Of(send), sendCounts, sendDispls, Of(recv), counts, displs)
}

// Alltoallw is Alltoall with a buffer for each rank, of any type and length: send[i] goes to rank
// i, and recv[i] receives from rank i. Both have the same number of elements of the same type, or
// no elements of any types; otherwise all ranks get ErrMismatch (MPI_Alltoallw). In place: recv[i]
// is send[i]. Buffers on devices are staged whole.
func Alltoallw(ctx context.Context, c *Comm, send, recv []Buffer) error {
	return c.Alltoallw(ctx, send, recv)
}

// Scan combines the send of the ranks 0 to this one into recv, which has the same length
// (MPI_Scan). In place.
func Scan[T Scalar](ctx context.Context, c *Comm, send, recv []T, op Op) error {
	return c.Scan(ctx, Of(send), Of(recv), op)
}

// Exscan combines the send of the ranks below this one into recv, which has the same length; rank
// 0's recv stays unchanged (MPI_Exscan). In place.
func Exscan[T Scalar](ctx context.Context, c *Comm, send, recv []T, op Op) error {
	return c.Exscan(ctx, Of(send), Of(recv), op)
}

// builtin returns the operator of a built-in Op.
func builtin(op Op) call.Op { return call.Op{Kind: op} }

// custom returns the operator of a function over slices.
func custom[T Scalar](combine func(acc, in []T)) call.Op {
	if combine == nil {
		return call.Op{Kind: mem.Custom}
	}
	return call.Op{Kind: mem.Custom, Func: func(acc, in mem.Buffer) {
		combine(mem.Slice[T](acc), mem.Slice[T](in))
	}}
}
