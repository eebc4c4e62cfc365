package comm

import (
	"context"

	"gompi/comm/internal/engine"
)

// The blocking collectives over Buffers: what the functions of the same name do
// over slices, and the door for memory that is not the host's.

// Barrier is the function Barrier.
func (c *Comm) Barrier(ctx context.Context) error {
	var o operation
	o.barrier()
	return c.do(ctx, &o)
}

// Bcast is the function Bcast for Buffers.
func (c *Comm) Bcast(ctx context.Context, root int, b Buffer) error {
	var o operation
	o.bcast(root, b)
	return c.do(ctx, &o)
}

// Reduce is the function Reduce for Buffers.
func (c *Comm) Reduce(ctx context.Context, root int, send, recv Buffer, op Op) error {
	var o operation
	o.reduce(root, send, recv, builtin(op))
	return c.do(ctx, &o)
}

// Allreduce is the function Allreduce for Buffers.
func (c *Comm) Allreduce(ctx context.Context, send, recv Buffer, op Op) error {
	var o operation
	o.allreduce(send, recv, builtin(op))
	return c.do(ctx, &o)
}

// ReduceScatter is the function ReduceScatter for Buffers.
func (c *Comm) ReduceScatter(ctx context.Context, send, recv Buffer, counts []int, op Op) error {
	var o operation
	o.reduceScatter(send, recv, counts, builtin(op))
	return c.do(ctx, &o)
}

// ReduceScatterBlock is the function ReduceScatterBlock for Buffers.
func (c *Comm) ReduceScatterBlock(ctx context.Context, send, recv Buffer, op Op) error {
	var o operation
	o.reduceScatterBlock(send, recv, builtin(op))
	return c.do(ctx, &o)
}

// Allgather is the function Allgather for Buffers.
func (c *Comm) Allgather(ctx context.Context, send, recv Buffer) error {
	var o operation
	o.allgather(send, recv)
	return c.do(ctx, &o)
}

// Allgatherv is the function Allgatherv for Buffers.
func (c *Comm) Allgatherv(ctx context.Context, send, recv Buffer, counts, displs []int) error {
	var o operation
	o.allgatherv(send, recv, counts, displs)
	return c.do(ctx, &o)
}

// Gather is the function Gather for Buffers.
func (c *Comm) Gather(ctx context.Context, root int, send, recv Buffer) error {
	var o operation
	o.gather(root, send, recv)
	return c.do(ctx, &o)
}

// Gatherv is the function Gatherv for Buffers.
func (c *Comm) Gatherv(ctx context.Context, root int, send, recv Buffer, counts, displs []int) error {
	var o operation
	o.gatherv(root, send, recv, counts, displs)
	return c.do(ctx, &o)
}

// Scatter is the function Scatter for Buffers.
func (c *Comm) Scatter(ctx context.Context, root int, send, recv Buffer) error {
	var o operation
	o.scatter(root, send, recv)
	return c.do(ctx, &o)
}

// Scatterv is the function Scatterv for Buffers.
func (c *Comm) Scatterv(ctx context.Context, root int, send, recv Buffer, counts, displs []int) error {
	var o operation
	o.scatterv(root, send, recv, counts, displs)
	return c.do(ctx, &o)
}

// Alltoall is the function Alltoall for Buffers.
func (c *Comm) Alltoall(ctx context.Context, send, recv Buffer) error {
	var o operation
	o.alltoall(send, recv)
	return c.do(ctx, &o)
}

// Alltoallv is the function Alltoallv for Buffers.
func (c *Comm) Alltoallv(ctx context.Context, send Buffer, sendCounts, sendDispls []int, recv Buffer, counts, displs []int) error {
	var o operation
	o.alltoallv(send, sendCounts, sendDispls, recv, counts, displs)
	return c.do(ctx, &o)
}

// Scan is the function Scan for Buffers.
func (c *Comm) Scan(ctx context.Context, send, recv Buffer, op Op) error {
	var o operation
	o.scan(engine.Scan, send, recv, builtin(op))
	return c.do(ctx, &o)
}

// Exscan is the function Exscan for Buffers.
func (c *Comm) Exscan(ctx context.Context, send, recv Buffer, op Op) error {
	var o operation
	o.scan(engine.Exscan, send, recv, builtin(op))
	return c.do(ctx, &o)
}
