package comm

import "gompi/comm/internal/engine"

// The nonblocking and the persistent collectives. I... starts the operation and
// returns at once; ...Init returns a Persistent that Start starts, as often as one
// likes. All ranks call, or start, the collectives of one Comm in the same order,
// blocking ones included; they run one after the other. Slices of counts and
// displacements are kept until the Request is done.

// Ibarrier starts a Barrier.
func (c *Comm) Ibarrier() Request {
	var o operation
	o.barrier()
	return c.collective(&o)
}

// BarrierInit returns a persistent Barrier.
func (c *Comm) BarrierInit() *Persistent {
	var o operation
	o.barrier()
	return c.persistent(&o)
}

// Ibcast starts a Bcast.
func (c *Comm) Ibcast(root int, b Buffer) Request {
	var o operation
	o.bcast(root, b)
	return c.collective(&o)
}

// BcastInit returns a persistent Bcast.
func (c *Comm) BcastInit(root int, b Buffer) *Persistent {
	var o operation
	o.bcast(root, b)
	return c.persistent(&o)
}

// Ireduce starts a Reduce.
func (c *Comm) Ireduce(root int, send, recv Buffer, op Op) Request {
	var o operation
	o.reduce(root, send, recv, builtin(op))
	return c.collective(&o)
}

// ReduceInit returns a persistent Reduce.
func (c *Comm) ReduceInit(root int, send, recv Buffer, op Op) *Persistent {
	var o operation
	o.reduce(root, send, recv, builtin(op))
	return c.persistent(&o)
}

// Iallreduce starts an Allreduce.
func (c *Comm) Iallreduce(send, recv Buffer, op Op) Request {
	var o operation
	o.allreduce(send, recv, builtin(op))
	return c.collective(&o)
}

// AllreduceInit returns a persistent Allreduce.
func (c *Comm) AllreduceInit(send, recv Buffer, op Op) *Persistent {
	var o operation
	o.allreduce(send, recv, builtin(op))
	return c.persistent(&o)
}

// IreduceScatter starts a ReduceScatter.
func (c *Comm) IreduceScatter(send, recv Buffer, counts []int, op Op) Request {
	var o operation
	o.reduceScatter(send, recv, counts, builtin(op))
	return c.collective(&o)
}

// ReduceScatterInit returns a persistent ReduceScatter.
func (c *Comm) ReduceScatterInit(send, recv Buffer, counts []int, op Op) *Persistent {
	var o operation
	o.reduceScatter(send, recv, counts, builtin(op))
	return c.persistent(&o)
}

// IreduceScatterBlock starts a ReduceScatterBlock.
func (c *Comm) IreduceScatterBlock(send, recv Buffer, op Op) Request {
	var o operation
	o.reduceScatterBlock(send, recv, builtin(op))
	return c.collective(&o)
}

// ReduceScatterBlockInit returns a persistent ReduceScatterBlock.
func (c *Comm) ReduceScatterBlockInit(send, recv Buffer, op Op) *Persistent {
	var o operation
	o.reduceScatterBlock(send, recv, builtin(op))
	return c.persistent(&o)
}

// Iallgather starts an Allgather.
func (c *Comm) Iallgather(send, recv Buffer) Request {
	var o operation
	o.allgather(send, recv)
	return c.collective(&o)
}

// AllgatherInit returns a persistent Allgather.
func (c *Comm) AllgatherInit(send, recv Buffer) *Persistent {
	var o operation
	o.allgather(send, recv)
	return c.persistent(&o)
}

// Iallgatherv starts an Allgatherv.
func (c *Comm) Iallgatherv(send, recv Buffer, counts, displs []int) Request {
	var o operation
	o.allgatherv(send, recv, counts, displs)
	return c.collective(&o)
}

// AllgathervInit returns a persistent Allgatherv.
func (c *Comm) AllgathervInit(send, recv Buffer, counts, displs []int) *Persistent {
	var o operation
	o.allgatherv(send, recv, counts, displs)
	return c.persistent(&o)
}

// Igather starts a Gather.
func (c *Comm) Igather(root int, send, recv Buffer) Request {
	var o operation
	o.gather(root, send, recv)
	return c.collective(&o)
}

// GatherInit returns a persistent Gather.
func (c *Comm) GatherInit(root int, send, recv Buffer) *Persistent {
	var o operation
	o.gather(root, send, recv)
	return c.persistent(&o)
}

// Igatherv starts a Gatherv.
func (c *Comm) Igatherv(root int, send, recv Buffer, counts, displs []int) Request {
	var o operation
	o.gatherv(root, send, recv, counts, displs)
	return c.collective(&o)
}

// GathervInit returns a persistent Gatherv.
func (c *Comm) GathervInit(root int, send, recv Buffer, counts, displs []int) *Persistent {
	var o operation
	o.gatherv(root, send, recv, counts, displs)
	return c.persistent(&o)
}

// Iscatter starts a Scatter.
func (c *Comm) Iscatter(root int, send, recv Buffer) Request {
	var o operation
	o.scatter(root, send, recv)
	return c.collective(&o)
}

// ScatterInit returns a persistent Scatter.
func (c *Comm) ScatterInit(root int, send, recv Buffer) *Persistent {
	var o operation
	o.scatter(root, send, recv)
	return c.persistent(&o)
}

// Iscatterv starts a Scatterv.
func (c *Comm) Iscatterv(root int, send, recv Buffer, counts, displs []int) Request {
	var o operation
	o.scatterv(root, send, recv, counts, displs)
	return c.collective(&o)
}

// ScattervInit returns a persistent Scatterv.
func (c *Comm) ScattervInit(root int, send, recv Buffer, counts, displs []int) *Persistent {
	var o operation
	o.scatterv(root, send, recv, counts, displs)
	return c.persistent(&o)
}

// Ialltoall starts an Alltoall.
func (c *Comm) Ialltoall(send, recv Buffer) Request {
	var o operation
	o.alltoall(send, recv)
	return c.collective(&o)
}

// AlltoallInit returns a persistent Alltoall.
func (c *Comm) AlltoallInit(send, recv Buffer) *Persistent {
	var o operation
	o.alltoall(send, recv)
	return c.persistent(&o)
}

// Ialltoallv starts an Alltoallv.
func (c *Comm) Ialltoallv(send Buffer, sendCounts, sendDispls []int, recv Buffer, counts, displs []int) Request {
	var o operation
	o.alltoallv(send, sendCounts, sendDispls, recv, counts, displs)
	return c.collective(&o)
}

// AlltoallvInit returns a persistent Alltoallv.
func (c *Comm) AlltoallvInit(send Buffer, sendCounts, sendDispls []int, recv Buffer, counts, displs []int) *Persistent {
	var o operation
	o.alltoallv(send, sendCounts, sendDispls, recv, counts, displs)
	return c.persistent(&o)
}

// Iscan starts a Scan.
func (c *Comm) Iscan(send, recv Buffer, op Op) Request {
	var o operation
	o.scan(engine.Scan, send, recv, builtin(op))
	return c.collective(&o)
}

// ScanInit returns a persistent Scan.
func (c *Comm) ScanInit(send, recv Buffer, op Op) *Persistent {
	var o operation
	o.scan(engine.Scan, send, recv, builtin(op))
	return c.persistent(&o)
}

// Iexscan starts an Exscan.
func (c *Comm) Iexscan(send, recv Buffer, op Op) Request {
	var o operation
	o.scan(engine.Exscan, send, recv, builtin(op))
	return c.collective(&o)
}

// ExscanInit returns a persistent Exscan.
func (c *Comm) ExscanInit(send, recv Buffer, op Op) *Persistent {
	var o operation
	o.scan(engine.Exscan, send, recv, builtin(op))
	return c.persistent(&o)
}
