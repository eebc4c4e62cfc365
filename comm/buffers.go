package comm

import (
	"context"

	"gompi/comm/internal/call"
)

// The blocking collectives over Buffers, which may be in memory of devices. The functions of the
// same names do the same over slices.

// Barrier is the function Barrier.
func (c *Comm) Barrier(ctx context.Context) error { return c.do(ctx, new(call.Call).Barrier()) }

// Bcast is the function Bcast for Buffers.
func (c *Comm) Bcast(ctx context.Context, root int, b Buffer) error {
	return c.do(ctx, new(call.Call).Bcast(root, b))
}

// Reduce is the function Reduce for Buffers.
func (c *Comm) Reduce(ctx context.Context, root int, send, recv Buffer, op Op) error {
	return c.do(ctx, new(call.Call).Reduce(root, send, recv, builtin(op)))
}

// Allreduce is the function Allreduce for Buffers.
func (c *Comm) Allreduce(ctx context.Context, send, recv Buffer, op Op) error {
	return c.do(ctx, new(call.Call).Allreduce(send, recv, builtin(op)))
}

// ReduceScatter is the function ReduceScatter for Buffers.
func (c *Comm) ReduceScatter(ctx context.Context, send, recv Buffer, counts []int, op Op) error {
	return c.do(ctx, new(call.Call).ReduceScatter(send, recv, counts, builtin(op)))
}

// ReduceScatterBlock is the function ReduceScatterBlock for Buffers.
func (c *Comm) ReduceScatterBlock(ctx context.Context, send, recv Buffer, op Op) error {
	return c.do(ctx, new(call.Call).ReduceScatterBlock(send, recv, builtin(op)))
}

// Allgather is the function Allgather for Buffers.
func (c *Comm) Allgather(ctx context.Context, send, recv Buffer) error {
	return c.do(ctx, new(call.Call).Allgather(send, recv))
}

// Allgatherv is the function Allgatherv for Buffers.
func (c *Comm) Allgatherv(ctx context.Context, send, recv Buffer, counts, displs []int) error {
	return c.do(ctx, new(call.Call).Allgatherv(send, recv, counts, displs))
}

// Gather is the function Gather for Buffers.
func (c *Comm) Gather(ctx context.Context, root int, send, recv Buffer) error {
	return c.do(ctx, new(call.Call).Gather(root, send, recv))
}

// Gatherv is the function Gatherv for Buffers.
func (c *Comm) Gatherv(ctx context.Context, root int, send, recv Buffer, counts, displs []int) error {
	return c.do(ctx, new(call.Call).Gatherv(root, send, recv, counts, displs))
}

// Scatter is the function Scatter for Buffers.
func (c *Comm) Scatter(ctx context.Context, root int, send, recv Buffer) error {
	return c.do(ctx, new(call.Call).Scatter(root, send, recv))
}

// Scatterv is the function Scatterv for Buffers.
func (c *Comm) Scatterv(ctx context.Context, root int, send, recv Buffer, counts, displs []int) error {
	return c.do(ctx, new(call.Call).Scatterv(root, send, recv, counts, displs))
}

// Alltoall is the function Alltoall for Buffers.
func (c *Comm) Alltoall(ctx context.Context, send, recv Buffer) error {
	return c.do(ctx, new(call.Call).Alltoall(send, recv))
}

// Alltoallv is the function Alltoallv for Buffers.
func (c *Comm) Alltoallv(ctx context.Context, send Buffer, sendCounts, sendDispls []int, recv Buffer, counts, displs []int) error {
	return c.do(ctx, new(call.Call).Alltoallv(send, sendCounts, sendDispls, recv, counts, displs))
}

// Alltoallw is the function Alltoallw.
func (c *Comm) Alltoallw(ctx context.Context, send, recv []Buffer) error {
	return c.do(ctx, new(call.Call).Alltoallw(send, recv))
}

// Scan is the function Scan for Buffers.
func (c *Comm) Scan(ctx context.Context, send, recv Buffer, op Op) error {
	return c.do(ctx, new(call.Call).Scan(send, recv, builtin(op)))
}

// Exscan is the function Exscan for Buffers.
func (c *Comm) Exscan(ctx context.Context, send, recv Buffer, op Op) error {
	return c.do(ctx, new(call.Call).Exscan(send, recv, builtin(op)))
}
