package collective

import (
	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/mem"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/dtypes"
)

// A reduction is the arguments of a collective with an operator.
type reduction struct {
	send, recv abi.Addr
	t          *dtypes.Datatype
	op         *dtypes.Op
	total, n   int   // elements of an operand and of this rank's result
	counts     []int // of the results of all ranks, if they differ
}

// reduction fills in p, a k.
func (p *Plan) reduction(k calls.Kind, a *Args, isRoot bool) error {
	row := &calls.Table[k]
	r := reduction{send: a.Send.Buf, recv: a.Recv.Buf, t: a.Recv.Type, op: a.Op}
	if r.send == abi.InPlace {
		r.send = r.recv
	}
	if err := r.measure(p, row.Send.Layout, &a.Recv); err != nil {
		return err
	}
	if err := dtypes.CheckOp(r.op, r.t); err != nil {
		return err
	}
	if p.c.Inter != nil {
		return across{p.c.Inter, k}.reduction(p, r, a.Root)
	}
	x := call.Arguments{Root: a.Root, Op: r.op.Combination(r.t), SendCounts: r.counts}
	x.Send = r.operand(p)
	switch row.Recv.On(isRoot) {
	case calls.Unused:
	case calls.Kept: // the program's means nothing there
		x.Recv = x.Send
	default:
		x.Recv = r.result(p)
	}
	p.o.Fill(k, &x)
	return nil
}

// measure sets how many elements there are, and checks them.
func (r *reduction) measure(p *Plan, l calls.Layout, s *Side) error {
	r.total, r.n = s.Count, s.Count
	size, _ := comms.CommSize(p.c)
	switch l {
	case calls.Even:
		r.total *= size
		return dtypes.CheckBlocks(p.c.P2P.Size(), r.n, r.t) // of either group
	case calls.Counted:
		rank, _ := comms.CommRank(p.c)
		r.counts, r.total = p.list(s.Counts, size), 0
		r.n = r.counts[rank]
		for i, n := range r.counts {
			if n < 0 {
				return negative(i, n)
			}
			r.total += n
		}
	}
	return dtypes.Check(r.total, r.t)
}

// operand returns the elements that this rank gives.
func (r *reduction) operand(p *Plan) mem.Buffer { return r.elements(&p.outs, r.send, r.total) }

// result returns the memory for combined elements.
func (r *reduction) result(p *Plan) mem.Buffer { return r.elements(&p.ins, r.recv, r.n) }

// elements returns n elements in the form that the operator combines: in place or, if the operator
// needs packed elements, in a copy, which it appends to list.
func (r *reduction) elements(list *[]dtypes.Staged, buf abi.Addr, n int) mem.Buffer {
	if b, ok := r.op.Elements(buf, n, r.t); ok {
		return b
	}
	size := r.op.ElementSize(r.t)
	room := make([]byte, n*size)
	*list = append(*list, r.t.Stage(buf, n, room))
	return mem.HostElements(size, n, room)
}
