package collective

import (
	"context"

	"gompi/internal/calls"
	"gompi/internal/core"
	"gompi/internal/core/call"
	"gompi/internal/mem"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/dtypes"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/ops"
)

// Collectives of intercommunicators (MPI 4.0, section 6.2.3): data goes from one group to the
// other. All are an alltoallw over both groups, in which most buffers are empty; reductions first
// combine within a group. A step of one may follow another of the next only in the order of the
// calls, so they run one after the other: on a goroutine if they are nonblocking.

// An across fills in plans of a collective between the groups of an intercommunicator.
type across struct {
	*comms.Inter
	kind calls.Kind
}

func checkRemoteRoot(x *comms.Inter, root int) error {
	if root == abi.RootHere || root == abi.ProcNull || root >= 0 && root < x.Remote.Size() {
		return nil
	}
	return errs.New(errs.Root, "root %d is not from 0 to %d, and not MPI_ROOT or MPI_PROC_NULL", root, x.Remote.Size()-1)
}

// exchange makes p an exchange in which rank i of the remote group gets to(i), and gives what comes
// to from(i). nil is nothing.
func (x across) exchange(p *Plan, to, from func(i int) mem.Buffer) error {
	send, recv := make([]mem.Buffer, x.Both.Size()), make([]mem.Buffer, x.Both.Size())
	for i, r := range x.Remote.Translate(x.Both.Group()) {
		if to != nil {
			send[r] = to(i)
		}
		if from != nil {
			recv[r] = from(i)
		}
	}
	for i := range send { // core wants a type
		if send[i].Type() == 0 {
			send[i] = mem.Of([]byte(nil))
		}
		if recv[i].Type() == 0 {
			recv[i] = mem.Of([]byte(nil))
		}
	}
	steps := p.steps
	p.o.Kind = x.kind
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

// all returns the same buffer for each rank, one that of a single one.
func all(b mem.Buffer) func(int) mem.Buffer { return func(int) mem.Buffer { return b } }

func only(rank int, b mem.Buffer) func(int) mem.Buffer {
	return func(i int) mem.Buffer {
		if i == rank {
			return b
		}
		return mem.Buffer{}
	}
}

func (x across) barrier(p *Plan) error {
	p.o.Barrier()
	p.steps = func(ctx context.Context, y *comms.Inter) error { return y.Both.Do(ctx, new(call.Call).Barrier()) }
	return nil
}

func (x across) bcast(p *Plan, buf abi.Addr, n int, t *dtypes.Datatype, root int) error {
	if root == abi.ProcNull {
		return x.exchange(p, nil, nil)
	}
	if err := dtypes.Check(n, t); err != nil {
		return err
	}
	if root == abi.RootHere {
		return x.exchange(p, all(p.out(buf, n, t)), nil)
	}
	return x.exchange(p, nil, only(root, p.in(buf, n, t)))
}

// blocks returns the blocks of n elements each that come, or go.
func (p *Plan) blocks(buf abi.Addr, n int, t *dtypes.Datatype, use func(abi.Addr, int, *dtypes.Datatype) mem.Buffer) func(int) mem.Buffer {
	return func(i int) mem.Buffer { return use(own(buf, n, t, i), n, t) }
}

func (l *layout) blocks(use func(abi.Addr, int, *dtypes.Datatype) mem.Buffer) func(int) mem.Buffer {
	return func(i int) mem.Buffer {
		at, n := l.block(i)
		return use(at, n, l.t)
	}
}

func (x across) gather(p *Plan, sendbuf abi.Addr, sendcount int, sendtype *dtypes.Datatype, recvbuf abi.Addr, recvcount int, recvtype *dtypes.Datatype, root int) error {
	switch root {
	case abi.ProcNull:
		return x.exchange(p, nil, nil)
	case abi.RootHere:
		if err := dtypes.Check(recvcount, recvtype); err != nil {
			return err
		}
		return x.exchange(p, nil, p.blocks(recvbuf, recvcount, recvtype, p.in))
	}
	if err := dtypes.Check(sendcount, sendtype); err != nil {
		return err
	}
	return x.exchange(p, only(root, p.out(sendbuf, sendcount, sendtype)), nil)
}

func (x across) gatherv(p *Plan, sendbuf abi.Addr, sendcount int, sendtype *dtypes.Datatype, recvbuf abi.Addr, counts, displs abi.Array, recvtype *dtypes.Datatype, root int) error {
	if root != abi.RootHere {
		return x.gather(p, sendbuf, sendcount, sendtype, 0, 0, nil, root)
	}
	l := layoutOf(recvbuf, counts, displs, recvtype, x.Remote.Size())
	if err := l.check(); err != nil {
		return err
	}
	return x.exchange(p, nil, l.blocks(p.in))
}

func (x across) scatter(p *Plan, sendbuf abi.Addr, sendcount int, sendtype *dtypes.Datatype, recvbuf abi.Addr, recvcount int, recvtype *dtypes.Datatype, root int) error {
	switch root {
	case abi.ProcNull:
		return x.exchange(p, nil, nil)
	case abi.RootHere:
		if err := dtypes.Check(sendcount, sendtype); err != nil {
			return err
		}
		return x.exchange(p, p.blocks(sendbuf, sendcount, sendtype, p.out), nil)
	}
	if err := dtypes.Check(recvcount, recvtype); err != nil {
		return err
	}
	return x.exchange(p, nil, only(root, p.in(recvbuf, recvcount, recvtype)))
}

func (x across) scatterv(p *Plan, sendbuf abi.Addr, counts, displs abi.Array, sendtype *dtypes.Datatype, recvbuf abi.Addr, recvcount int, recvtype *dtypes.Datatype, root int) error {
	if root != abi.RootHere {
		return x.scatter(p, 0, 0, nil, recvbuf, recvcount, recvtype, root)
	}
	l := layoutOf(sendbuf, counts, displs, sendtype, x.Remote.Size())
	if err := l.check(); err != nil {
		return err
	}
	return x.exchange(p, l.blocks(p.out), nil)
}

func (x across) allgather(p *Plan, sendbuf abi.Addr, sendcount int, sendtype *dtypes.Datatype, recvbuf abi.Addr, recvcount int, recvtype *dtypes.Datatype) error {
	if err := dtypes.Check(sendcount, sendtype); err != nil {
		return err
	}
	return x.exchange(p, all(p.out(sendbuf, sendcount, sendtype)), p.blocks(recvbuf, recvcount, recvtype, p.in))
}

func (x across) allgatherv(p *Plan, sendbuf abi.Addr, sendcount int, sendtype *dtypes.Datatype, l layout) error {
	if err := dtypes.Check(sendcount, sendtype); err != nil {
		return err
	}
	return x.exchange(p, all(p.out(sendbuf, sendcount, sendtype)), l.blocks(p.in))
}

func (x across) alltoall(p *Plan, sendbuf abi.Addr, sendcount int, sendtype *dtypes.Datatype, recvbuf abi.Addr, recvcount int, recvtype *dtypes.Datatype) error {
	return x.exchange(p, p.blocks(sendbuf, sendcount, sendtype, p.out), p.blocks(recvbuf, recvcount, recvtype, p.in))
}

func (x across) alltoallv(p *Plan, from, to layout) error {
	return x.exchange(p, from.blocks(p.out), to.blocks(p.in))
}

func (x across) alltoallw(p *Plan, send, recv []mem.Buffer) error {
	return x.exchange(p, func(i int) mem.Buffer { return send[i] }, func(i int) mem.Buffer { return recv[i] })
}

// combined makes the first step of p a reduction within the local group to its rank 0, and returns
// the result, which the other group gets.
func (x across) combined(p *Plan, sendbuf abi.Addr, n int, t *dtypes.Datatype, o *ops.Op) *Plan {
	first := new(Plan)
	operand := first.operand(sendbuf, n, t, o)
	room := make([]byte, operand.Size())
	result := mem.Of(room).As(operand)
	first.o.Reduce(0, operand, result, o.Combination(t))
	p.steps = func(ctx context.Context, y *comms.Inter) error {
		first.c = &comms.Comm{P2P: y.Local}
		err := first.run(core.Within(ctx, x.kind))
		if err != nil && y.Local.Err() != nil { // the others wait in Both, where no mismatch is found
			y.Both.Revoke(errs.Explain(err))
		}
		return err
	}
	p.combined = room
	return p
}

// sent returns the combined elements that rank 0 of the local group sends, from element lo on.
func (x across) sent(p *Plan, t *dtypes.Datatype, o *ops.Op, lo, n int) mem.Buffer {
	if x.Local.Rank() != 0 {
		return mem.Buffer{}
	}
	size := o.ElementSize(t)
	return mem.Of(p.combined[lo*size : (lo+n)*size])
}

func (x across) reduce(p *Plan, sendbuf, recvbuf abi.Addr, n int, t *dtypes.Datatype, o *ops.Op, root int) error {
	if root == abi.ProcNull {
		return x.exchange(p, nil, nil)
	}
	if err := p.checkReduction(n, t, o); err != nil {
		return err
	}
	if root == abi.RootHere {
		return x.exchange(p, nil, only(0, p.result(recvbuf, n, t, o).Raw()))
	}
	x.combined(p, sendbuf, n, t, o)
	return x.exchange(p, only(root, x.sent(p, t, o, 0, n)), nil)
}

func (x across) allreduce(p *Plan, sendbuf, recvbuf abi.Addr, n int, t *dtypes.Datatype, o *ops.Op) error {
	x.combined(p, sendbuf, n, t, o)
	return x.exchange(p, all(x.sent(p, t, o, 0, n)), only(0, p.result(recvbuf, n, t, o).Raw()))
}

// reduceScatter gives each rank its part of what the other group has combined. counts are those of
// the local group, so that the other's are asked for.
func (x across) reduceScatter(p *Plan, sendbuf, recvbuf abi.Addr, counts []int, total int, t *dtypes.Datatype, o *ops.Op) error {
	x.combined(p, sendbuf, total, t, o)
	mine := counts[x.Local.Rank()]
	recv := only(0, p.result(recvbuf, mine, t, o).Raw())
	reduce := p.steps
	p.steps = func(ctx context.Context, y *comms.Inter) error {
		theirs := make([]int64, x.Both.Size())
		if err := reduce(ctx, y); err != nil {
			return err
		}
		if err := x.do(ctx, y, new(call.Call).Allgather(mem.Of([]int64{int64(mine)}), mem.Of(theirs))); err != nil {
			return err
		}
		at := 0
		places := x.Remote.Translate(x.Both.Group())
		q := NewPlan(p.c)
		err := x.exchange(q, func(i int) mem.Buffer {
			n := int(theirs[places[i]])
			at += n
			return x.sent(p, t, o, at-n, n)
		}, recv)
		if err != nil {
			return err
		}
		if err := q.steps(ctx, y); err != nil {
			return err
		}
		p.end()
		return nil
	}
	return nil
}
