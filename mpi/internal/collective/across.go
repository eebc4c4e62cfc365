package collective

import (
	"context"
	"slices"

	"gompi/internal/calls"
	"gompi/internal/core"
	"gompi/internal/core/call"
	"gompi/internal/mem"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/errs"
)

// Collectives of intercommunicators (MPI 4.0, section 6.2.3): data goes from each group to the
// other. All are an alltoallw over both groups, in which most buffers are empty; reductions first
// combine within a group. Steps of several calls may follow each other only in the order of the
// calls, so the calls run one after the other: on a goroutine if they are nonblocking.

// An across fills in plans of a collective between the groups of an intercommunicator.
type across struct {
	*comms.Inter
	kind calls.Kind
}

func checkRemoteRoot(x *comms.Inter, root int) error {
	if root == abi.RootHere || root == abi.ProcNull || root >= 0 && root < x.Remote.Size() {
		return nil
	}
	return errs.New(errs.Root, "root %d is not from 0 to %d, and not MPI_ROOT or MPI_PROC_NULL", root,
		x.Remote.Size()-1)
}

// exchange makes p an exchange with the remote group: this rank sends to[i] to rank i, and receives
// from rank i into from[i]. A nil list stands for empty buffers.
func (x across) exchange(p *Plan, to, from []mem.Buffer) error {
	empty := []mem.Buffer{mem.Of([]byte(nil))} // core wants a type
	send, recv := slices.Repeat(empty, x.Both.Size()), slices.Repeat(empty, x.Both.Size())
	for i, r := range x.Remote.Translate(x.Both.Group()) {
		if to != nil && to[i].Type() != 0 {
			send[r] = to[i]
		}
		if from != nil && from[i].Type() != 0 {
			recv[r] = from[i]
		}
	}
	steps := p.steps
	p.steps = func(ctx context.Context, y *comms.Inter) error {
		if steps != nil {
			if err := steps(ctx, y); err != nil {
				return err
			}
		}
		p.begin()
		if err := x.do(ctx, y, new(call.Call).Alltoallw(send, recv)); err != nil {
			return err
		}
		p.end()
		return nil
	}
	return nil
}

// do does o, a part of the collective.
func (x across) do(ctx context.Context, y *comms.Inter, o *call.Call) error {
	return y.Both.Do(core.Within(ctx, x.kind), o)
}

// only returns buffers for the remote group: b for a single rank, none for the others.
func (x across) only(rank int, b mem.Buffer) []mem.Buffer {
	all := make([]mem.Buffer, x.Remote.Size())
	all[rank] = b
	return all
}

func (x across) barrier(p *Plan) error {
	p.steps = func(ctx context.Context, y *comms.Inter) error { return y.Both.Do(ctx, new(call.Call).Barrier()) }
	return nil
}

// stays makes a vector unused if its blocks would stay with this rank: within a group a root
// sends a block to itself.
func stays(row *calls.Traits, isRoot bool, send, recv *vector) {
	if row.Recv.On(!isRoot) == calls.Unused {
		send.role = calls.Unused
	}
	if row.Send.Layout != calls.Absent && row.Send.On(!isRoot) == calls.Unused {
		recv.role = calls.Unused
	}
}

// blocks makes p an exchange of the blocks of two vectors. root is a rank of the remote group, or
// means nothing.
func (x across) blocks(p *Plan, send, recv *vector, root int) error {
	to, from := send.each(p), recv.each(p)
	if recv.role == calls.Read { // the data of a broadcast
		to, from = from, nil
	}
	if !x.kind.Rooted() || root == abi.RootHere {
		return x.exchange(p, to, from)
	}
	if to != nil {
		to = x.only(root, to[root])
	}
	if from != nil {
		from = x.only(root, from[root])
	}
	return x.exchange(p, to, from)
}

// combined makes the first step of p a reduction within the local group to its rank 0, and keeps
// room for the result, which the other group gets.
func (x across) combined(p *Plan, r *reduction) {
	first := new(Plan)
	operand := r.operand(first)
	room := make([]byte, operand.Size())
	first.o.Reduce(0, operand, mem.Of(room).As(operand), r.op.Combination(r.t))
	p.steps = func(ctx context.Context, y *comms.Inter) error {
		first.c = &comms.Comm{P2P: y.Local}
		err := first.run(core.Within(ctx, x.kind))
		if err != nil && y.Local.Err() != nil { // the others wait in Both, where no mismatch is found
			y.Both.Revoke(errs.Explain(err))
		}
		return err
	}
	p.combined = room
}

// sent returns the combined elements that rank 0 of the local group sends, from element lo on.
func (x across) sent(p *Plan, r *reduction, lo, n int) mem.Buffer {
	if x.Local.Rank() != 0 {
		return mem.Buffer{}
	}
	size := r.op.ElementSize(r.t)
	return mem.Of(p.combined[lo*size : (lo+n)*size])
}

func (x across) reduction(p *Plan, r reduction, root int) error {
	rooted := x.kind.Rooted()
	if rooted && root == abi.RootHere {
		return x.exchange(p, nil, x.only(0, r.result(p).Raw()))
	}
	x.combined(p, &r)
	switch {
	case x.kind.Splits():
		x.scatter(p, &r)
		return nil
	case rooted:
		return x.exchange(p, x.only(root, x.sent(p, &r, 0, r.n)), nil)
	}
	all := slices.Repeat([]mem.Buffer{x.sent(p, &r, 0, r.n)}, x.Remote.Size())
	return x.exchange(p, all, x.only(0, r.result(p).Raw()))
}

// scatter gives each rank its part of the other group's result. Each rank first sends the length of
// its part to the others.
func (x across) scatter(p *Plan, r *reduction) {
	recv := x.only(0, r.result(p).Raw())
	reduce := p.steps
	p.steps = func(ctx context.Context, y *comms.Inter) error {
		theirs := make([]int64, x.Both.Size())
		if err := reduce(ctx, y); err != nil {
			return err
		}
		if err := x.do(ctx, y, new(call.Call).Allgather(mem.Of([]int64{int64(r.n)}), mem.Of(theirs))); err != nil {
			return err
		}
		at := 0
		var to []mem.Buffer
		for _, place := range x.Remote.Translate(x.Both.Group()) {
			n := int(theirs[place])
			to = append(to, x.sent(p, r, at, n))
			at += n
		}
		q := PlanOf(p.c)
		if err := x.exchange(q, to, recv); err != nil {
			return err
		}
		if err := q.steps(ctx, y); err != nil {
			return err
		}
		p.end()
		return nil
	}
}
