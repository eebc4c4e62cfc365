package comm

import (
	"context"
	"fmt"

	"gompi/comm/internal/call"
	"gompi/comm/internal/coll"
	"gompi/comm/internal/node"
)

// do runs o for a blocking call.
func (c *Comm) do(ctx context.Context, o *call.Call) error {
	err := o.Check(c.Rank(), c.Size())
	if err != nil {
		err = badArgument("%v", err)
	} else {
		err = c.turns.run(ctx, c, o)
	}
	return c.fault(o.Kind.String(), -1, err)
}

// perform runs o, whose turn it is: through the room if c has one and nothing is tuned,
// else in a round. quiet is for collectives that run in the background. Its caller defers
// unwind: one deferred call in all is what a short collective can afford.
func (c *Comm) perform(ctx context.Context, o *call.Call, quiet bool) (err error) {
	c.performs = true
	if c.rounds {
		err = c.inRound(ctx, o, quiet)
	} else {
		err = c.inRoom(ctx, o, quiet)
	}
	if err != nil { // if it is this rank's alone, the others wait in vain
		c.ch.Break("failed in " + o.String() + ": " + err.Error())
	}
	c.performs = false
	return err
}

// unwind ends o if perform has not returned: a function of the user's, or a device's, has
// panicked or ended its goroutine. The others count on this rank, and whoever recovers may
// use other Comms.
func (c *Comm) unwind(o *call.Call) {
	if !c.performs {
		return
	}
	c.performs = false
	c.ch.Break("panicked, or ended its goroutine, in " + o.String())
	if c.rounds {
		c.ch.Round().End()
	} else {
		c.rec.EndCall(c.port.ticket)
	}
}

// inRoom runs o through memory that all members see.
func (c *Comm) inRoom(ctx context.Context, o *call.Call, quiet bool) error {
	a, b := o.Words()
	err := c.port.begin(ctx, a, b, o.Bytes(), quiet)
	if err == nil {
		c.room.Begin(node.Call{A: a, B: b}, quiet)
		err = c.throughRoom(o)
	}
	c.rec.EndCall(c.port.ticket)
	return err
}

// throughRoom runs o in its room: on devices where all its buffers are there, and in pieces
// of host memory where only some are and all ranks know how long it is.
func (c *Comm) throughRoom(o *call.Call) error {
	if c.library != nil {
		if done, err := c.byLibrary(way{c.room, c.waits()}, o); done || err != nil {
			return err
		}
	}
	switch some, reach, err := c.meet(o); {
	case err != nil:
		return err
	case reach:
		return run(o, c.room)
	case some && !o.Kind.LocalCounts():
		return c.pipe(c.room, o)
	}
	return c.carryOut(c.room, o)
}

// waits returns what waits in the midst of a collective that goes through the room.
func (c *Comm) waits() waiting {
	if c.rounds {
		return c.ch.Round()
	}
	return &c.port
}

// inRound gives o the next number, compares it with what the other ranks called, and
// runs it.
func (c *Comm) inRound(ctx context.Context, o *call.Call, quiet bool) error {
	rd := c.ch.Round()
	a, b := o.Words()
	ticket := c.rec.BeginCollective(c.ch.ID, a, b, o.Bytes(), rd.Seq()+1)
	defer c.rec.EndCall(ticket)
	if err := rd.Begin(ctx, o.Fingerprint, ticket, quiet); err != nil {
		return err
	}
	var err error
	switch {
	case c.room != nil:
		err = c.inner.begin(ctx, c.room, &o.Fingerprint, ticket, quiet)
	case c.levels != nil && c.levels.room != nil:
		err = c.levels.port.begin(ctx, c.levels.room, &o.Fingerprint, ticket, quiet)
	}
	if err == nil {
		err = c.throughRound(o)
	}
	if err != nil {
		rd.Fail(err)
	}
	if ended := rd.End(); ended != nil {
		err = ended
	}
	return err
}

// throughRound runs o by the algorithm that the table chooses if it is tuned, else through
// the room or by levels if c has such.
func (c *Comm) throughRound(o *call.Call) error {
	switch {
	case c.tuned(o):
	case c.room != nil:
		return c.throughRoom(o)
	case c.levels != nil:
		return c.throughMessages(c.levels, o)
	}
	return c.throughMessages(&c.messages, o)
}

// tuned reports whether a rule of the user's decides how o goes: its call alone tells, so
// ranks whose calls are equal agree. What has no choice of algorithms, and what makes
// communicators and memory, is never tuned.
func (c *Comm) tuned(o *call.Call) bool {
	if !c.table.Tunes() {
		return false
	}
	name, bytes := o.TunedAs(c.Size())
	return c.table.Tuned(name, c.Size(), bytes, o.Op)
}

// collectives is a way of doing them.
type collectives interface {
	Barrier() error
	Bcast(root int, b Buffer) error
	Reduce(root int, send, recv Buffer, op call.Op) error
	Allreduce(send, recv Buffer, op call.Op) error
	ReduceScatter(send, recv Buffer, counts []int, op call.Op) error
	ReduceScatterBlock(send, recv Buffer, op call.Op) error
	Allgather(send, recv Buffer) error
	Allgatherv(send, recv Buffer, counts, displs []int) error
	Gather(root int, send, recv Buffer) error
	Gatherv(root int, send, recv Buffer, counts, displs []int) error
	Scatter(root int, send, recv Buffer) error
	Scatterv(root int, send, recv Buffer, counts, displs []int) error
	Alltoall(send, recv Buffer) error
	Alltoallv(send Buffer, sendCounts, sendDispls []int, recv Buffer, counts, displs []int) error
	Scan(send, recv Buffer, op call.Op) error
	Exscan(send, recv Buffer, op call.Op) error
}

// run does o by x. A kind is told from the others where it has to: each has a method.
func run(o *call.Call, x collectives) error {
	root := o.Root
	switch o.Kind {
	case call.Barrier, call.Free:
		return x.Barrier()
	case call.Bcast:
		return x.Bcast(root, o.Recv)
	case call.Reduce:
		return x.Reduce(root, o.Send, o.Recv, o.Op)
	case call.Allreduce:
		return x.Allreduce(o.Send, o.Recv, o.Op)
	case call.ReduceScatter:
		return x.ReduceScatter(o.Send, o.Recv, o.SendCounts, o.Op)
	case call.ReduceScatterBlock:
		return x.ReduceScatterBlock(o.Send, o.Recv, o.Op)
	case call.Allgather, call.Dup, call.Split, call.Create, call.Alloc:
		return x.Allgather(o.Send, o.Recv)
	case call.Allgatherv:
		return x.Allgatherv(o.Send, o.Recv, o.RecvCounts, o.RecvDispls)
	case call.Gather:
		return x.Gather(root, o.Send, o.Recv)
	case call.Gatherv:
		return x.Gatherv(root, o.Send, o.Recv, o.RecvCounts, o.RecvDispls)
	case call.Scatter:
		return x.Scatter(root, o.Send, o.Recv)
	case call.Scatterv:
		return x.Scatterv(root, o.Send, o.Recv, o.SendCounts, o.SendDispls)
	case call.Alltoall:
		return x.Alltoall(o.Send, o.Recv)
	case call.Alltoallv:
		return x.Alltoallv(o.Send, o.SendCounts, o.SendDispls, o.Recv, o.RecvCounts, o.RecvDispls)
	case call.Scan:
		return x.Scan(o.Send, o.Recv, o.Op)
	case call.Exscan:
		return x.Exscan(o.Send, o.Recv, o.Op)
	}
	return fmt.Errorf("no algorithm for %v", o.Kind)
}

// messages does collectives by messages: as package coll does, with a table that
// chooses among its algorithms.
type messages struct {
	p coll.Peers
	t *coll.Table
}

func (m *messages) Barrier() error { return coll.Barrier(m.p, m.t) }

func (m *messages) Bcast(root int, b Buffer) error { return coll.Bcast(m.p, m.t, root, b) }

func (m *messages) Reduce(root int, send, recv Buffer, op call.Op) error {
	return coll.Reduce(m.p, m.t, root, send, recv, op)
}

func (m *messages) Allreduce(send, recv Buffer, op call.Op) error {
	return coll.Allreduce(m.p, m.t, send, recv, op)
}

func (m *messages) ReduceScatter(send, recv Buffer, counts []int, op call.Op) error {
	return coll.ReduceScatter(m.p, m.t, send, recv, counts, op)
}

func (m *messages) ReduceScatterBlock(send, recv Buffer, op call.Op) error {
	return coll.ReduceScatterBlock(m.p, m.t, send, recv, op)
}

func (m *messages) Allgather(send, recv Buffer) error { return coll.Allgather(m.p, m.t, send, recv) }

func (m *messages) Allgatherv(send, recv Buffer, counts, displs []int) error {
	return coll.Allgatherv(m.p, m.t, send, recv, counts, displs)
}

func (m *messages) Gather(root int, send, recv Buffer) error {
	return coll.Gather(m.p, m.t, root, send, recv)
}

func (m *messages) Gatherv(root int, send, recv Buffer, counts, displs []int) error {
	return coll.Gatherv(m.p, root, send, recv, counts, displs)
}

func (m *messages) Scatter(root int, send, recv Buffer) error {
	return coll.Scatter(m.p, m.t, root, send, recv)
}

func (m *messages) Scatterv(root int, send, recv Buffer, counts, displs []int) error {
	return coll.Scatterv(m.p, root, send, recv, counts, displs)
}

func (m *messages) Alltoall(send, recv Buffer) error { return coll.Alltoall(m.p, m.t, send, recv) }

func (m *messages) Alltoallv(send Buffer, sendCounts, sendDispls []int, recv Buffer, counts, displs []int) error {
	return coll.Alltoallv(m.p, send, sendCounts, sendDispls, recv, counts, displs)
}

func (m *messages) Scan(send, recv Buffer, op call.Op) error {
	return coll.Scan(m.p, m.t, send, recv, op)
}

func (m *messages) Exscan(send, recv Buffer, op call.Op) error {
	return coll.Exscan(m.p, m.t, send, recv, op)
}
