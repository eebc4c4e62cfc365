package comm

import (
	"context"
	"fmt"

	"gompi/comm/internal/coll"
	"gompi/comm/internal/engine"
	"gompi/internal/seg"
)

// perform runs o, whose turn it is: it gives it the next number, compares it
// with what the other ranks called, and runs the algorithm that the table
// chooses. quiet is for collectives that run in the background.
func (c *Comm) perform(ctx context.Context, o *operation, quiet bool) error {
	rd, root := c.ch.Round(), -1
	if o.call.Kind.Rooted() {
		root = int(o.call.Root)
	}
	ticket := c.rec.BeginCall(&seg.Call{
		Comm: c.ch.ID, Kind: seg.Kind(o.call.Kind), Type: o.call.Type, Op: o.call.Op,
		Peer: root, Count: o.call.Count, Bytes: int64(max(o.send.Size(), o.recv.Size())),
		Seq: int64(rd.Seq() + 1),
	})
	defer c.rec.EndCall(ticket)
	if err := rd.Begin(ctx, o.call, ticket, quiet); err != nil {
		return err
	}
	err := c.algorithm(rd, o)
	if ended := rd.End(); ended != nil {
		err = ended
	}
	if err != nil { // if it is this rank's alone, the others wait in vain
		c.ch.Break("failed in " + o.call.String() + ": " + err.Error())
	}
	return err
}

func (c *Comm) algorithm(p coll.Peers, o *operation) error {
	t, root := c.table, int(o.call.Root)
	switch o.call.Kind {
	case engine.Barrier:
		return coll.Barrier(p, t)
	case engine.Bcast:
		return coll.Bcast(p, t, root, o.recv)
	case engine.Reduce:
		return coll.Reduce(p, t, root, o.send, o.recv, o.op)
	case engine.Allreduce:
		return coll.Allreduce(p, t, o.send, o.recv, o.op)
	case engine.ReduceScatter:
		return coll.ReduceScatter(p, t, o.send, o.recv, o.counts, o.op)
	case engine.ReduceScatterBlock:
		return coll.ReduceScatterBlock(p, t, o.send, o.recv, o.op)
	case engine.Allgather, engine.Dup, engine.Split, engine.Create:
		return coll.Allgather(p, t, o.send, o.recv)
	case engine.Allgatherv:
		return coll.Allgatherv(p, t, o.send, o.recv, o.counts, o.displs)
	case engine.Gather:
		return coll.Gather(p, t, root, o.send, o.recv)
	case engine.Gatherv:
		return coll.Gatherv(p, root, o.send, o.recv, o.counts, o.displs)
	case engine.Scatter:
		return coll.Scatter(p, t, root, o.send, o.recv)
	case engine.Scatterv:
		return coll.Scatterv(p, root, o.send, o.recv, o.counts, o.displs)
	case engine.Alltoall:
		return coll.Alltoall(p, t, o.send, o.recv)
	case engine.Alltoallv:
		return coll.Alltoallv(p, o.send, o.sendCounts, o.sendDispls, o.recv, o.counts, o.displs)
	case engine.Scan:
		return coll.Scan(p, t, o.send, o.recv, o.op)
	case engine.Exscan:
		return coll.Exscan(p, t, o.send, o.recv, o.op)
	}
	return fmt.Errorf("no algorithm for %v", o.call.Kind)
}
