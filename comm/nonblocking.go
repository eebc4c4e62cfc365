package comm

import "gompi/comm/internal/call"

// The nonblocking and the persistent collectives. I... starts the operation and
// returns at once; ...Init returns a Persistent that Start starts, as often as one
// likes. All ranks call, or start, the collectives of one Comm in the same order,
// blocking ones included; they run one after the other. Slices of counts and
// displacements are kept until the Request is done.

// Ibarrier starts a Barrier.
func (c *Comm) Ibarrier() Request { return c.collective(new(call.Call).Barrier()) }

// BarrierInit returns a persistent Barrier.
func (c *Comm) BarrierInit() *Persistent { return c.persistent(new(call.Call).Barrier()) }

// Ibcast starts a Bcast.
func (c *Comm) Ibcast(root int, b Buffer) Request {
	return c.collective(new(call.Call).Bcast(root, b))
}

// BcastInit returns a persistent Bcast.
func (c *Comm) BcastInit(root int, b Buffer) *Persistent {
	return c.persistent(new(call.Call).Bcast(root, b))
}

// Ireduce starts a Reduce.
func (c *Comm) Ireduce(root int, send, recv Buffer, op Op) Request {
	return c.collective(new(call.Call).Reduce(root, send, recv, builtin(op)))
}

// ReduceInit returns a persistent Reduce.
func (c *Comm) ReduceInit(root int, send, recv Buffer, op Op) *Persistent {
	return c.persistent(new(call.Call).Reduce(root, send, recv, builtin(op)))
}

// Iallreduce starts an Allreduce.
func (c *Comm) Iallreduce(send, recv Buffer, op Op) Request {
	return c.collective(new(call.Call).Allreduce(send, recv, builtin(op)))
}

// AllreduceInit returns a persistent Allreduce.
func (c *Comm) AllreduceInit(send, recv Buffer, op Op) *Persistent {
	return c.persistent(new(call.Call).Allreduce(send, recv, builtin(op)))
}

// IreduceScatter starts a ReduceScatter.
func (c *Comm) IreduceScatter(send, recv Buffer, counts []int, op Op) Request {
	return c.collective(new(call.Call).ReduceScatter(send, recv, counts, builtin(op)))
}

// ReduceScatterInit returns a persistent ReduceScatter.
func (c *Comm) ReduceScatterInit(send, recv Buffer, counts []int, op Op) *Persistent {
	return c.persistent(new(call.Call).ReduceScatter(send, recv, counts, builtin(op)))
}

// IreduceScatterBlock starts a ReduceScatterBlock.
func (c *Comm) IreduceScatterBlock(send, recv Buffer, op Op) Request {
	return c.collective(new(call.Call).ReduceScatterBlock(send, recv, builtin(op)))
}

// ReduceScatterBlockInit returns a persistent ReduceScatterBlock.
func (c *Comm) ReduceScatterBlockInit(send, recv Buffer, op Op) *Persistent {
	return c.persistent(new(call.Call).ReduceScatterBlock(send, recv, builtin(op)))
}

// Iallgather starts an Allgather.
func (c *Comm) Iallgather(send, recv Buffer) Request {
	return c.collective(new(call.Call).Allgather(send, recv))
}

// AllgatherInit returns a persistent Allgather.
func (c *Comm) AllgatherInit(send, recv Buffer) *Persistent {
	return c.persistent(new(call.Call).Allgather(send, recv))
}

// Iallgatherv starts an Allgatherv.
func (c *Comm) Iallgatherv(send, recv Buffer, counts, displs []int) Request {
	return c.collective(new(call.Call).Allgatherv(send, recv, counts, displs))
}

// AllgathervInit returns a persistent Allgatherv.
func (c *Comm) AllgathervInit(send, recv Buffer, counts, displs []int) *Persistent {
	return c.persistent(new(call.Call).Allgatherv(send, recv, counts, displs))
}

// Igather starts a Gather.
func (c *Comm) Igather(root int, send, recv Buffer) Request {
	return c.collective(new(call.Call).Gather(root, send, recv))
}

// GatherInit returns a persistent Gather.
func (c *Comm) GatherInit(root int, send, recv Buffer) *Persistent {
	return c.persistent(new(call.Call).Gather(root, send, recv))
}

// Igatherv starts a Gatherv.
func (c *Comm) Igatherv(root int, send, recv Buffer, counts, displs []int) Request {
	return c.collective(new(call.Call).Gatherv(root, send, recv, counts, displs))
}

// GathervInit returns a persistent Gatherv.
func (c *Comm) GathervInit(root int, send, recv Buffer, counts, displs []int) *Persistent {
	return c.persistent(new(call.Call).Gatherv(root, send, recv, counts, displs))
}

// Iscatter starts a Scatter.
func (c *Comm) Iscatter(root int, send, recv Buffer) Request {
	return c.collective(new(call.Call).Scatter(root, send, recv))
}

// ScatterInit returns a persistent Scatter.
func (c *Comm) ScatterInit(root int, send, recv Buffer) *Persistent {
	return c.persistent(new(call.Call).Scatter(root, send, recv))
}

// Iscatterv starts a Scatterv.
func (c *Comm) Iscatterv(root int, send, recv Buffer, counts, displs []int) Request {
	return c.collective(new(call.Call).Scatterv(root, send, recv, counts, displs))
}

// ScattervInit returns a persistent Scatterv.
func (c *Comm) ScattervInit(root int, send, recv Buffer, counts, displs []int) *Persistent {
	return c.persistent(new(call.Call).Scatterv(root, send, recv, counts, displs))
}

// Ialltoall starts an Alltoall.
func (c *Comm) Ialltoall(send, recv Buffer) Request {
	return c.collective(new(call.Call).Alltoall(send, recv))
}

// AlltoallInit returns a persistent Alltoall.
func (c *Comm) AlltoallInit(send, recv Buffer) *Persistent {
	return c.persistent(new(call.Call).Alltoall(send, recv))
}

// Ialltoallv starts an Alltoallv.
func (c *Comm) Ialltoallv(send Buffer, sendCounts, sendDispls []int, recv Buffer, counts, displs []int) Request {
	return c.collective(new(call.Call).Alltoallv(send, sendCounts, sendDispls, recv, counts, displs))
}

// AlltoallvInit returns a persistent Alltoallv.
func (c *Comm) AlltoallvInit(send Buffer, sendCounts, sendDispls []int, recv Buffer, counts, displs []int) *Persistent {
	return c.persistent(new(call.Call).Alltoallv(send, sendCounts, sendDispls, recv, counts, displs))
}

// Ialltoallw starts an Alltoallw.
func (c *Comm) Ialltoallw(send, recv []Buffer) Request {
	return c.collective(new(call.Call).Alltoallw(send, recv))
}

// AlltoallwInit returns a persistent Alltoallw.
func (c *Comm) AlltoallwInit(send, recv []Buffer) *Persistent {
	return c.persistent(new(call.Call).Alltoallw(send, recv))
}

// Iscan starts a Scan.
func (c *Comm) Iscan(send, recv Buffer, op Op) Request {
	return c.collective(new(call.Call).Scan(send, recv, builtin(op)))
}

// ScanInit returns a persistent Scan.
func (c *Comm) ScanInit(send, recv Buffer, op Op) *Persistent {
	return c.persistent(new(call.Call).Scan(send, recv, builtin(op)))
}

// Iexscan starts an Exscan.
func (c *Comm) Iexscan(send, recv Buffer, op Op) Request {
	return c.collective(new(call.Call).Exscan(send, recv, builtin(op)))
}

// ExscanInit returns a persistent Exscan.
func (c *Comm) ExscanInit(send, recv Buffer, op Op) *Persistent {
	return c.persistent(new(call.Call).Exscan(send, recv, builtin(op)))
}
