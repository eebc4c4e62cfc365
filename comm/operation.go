package comm

import (
	"context"

	"gompi/comm/internal/coll"
	"gompi/comm/internal/engine"
	"gompi/internal/mem"
)

// An operation is one collective with its arguments. It is a value, so that a
// blocking call keeps it on its stack and a persistent request in itself.
type operation struct {
	call                   engine.Call
	send, recv             Buffer
	op                     coll.Op
	counts, displs         []int // of the vector that has one block per rank
	sendCounts, sendDispls []int // of alltoallv's second such vector
}

func call(k engine.Collective, b Buffer, count int) engine.Call {
	return engine.Call{Kind: k, Type: b.Type(), Count: int64(count)}
}

func reduction(k engine.Collective, b Buffer, count int, op coll.Op) engine.Call {
	return engine.Call{Kind: k, Type: b.Type(), Count: int64(count), Op: op.Kind}
}

func rooted(c engine.Call, root int) engine.Call {
	c.Root = int32(root)
	return c
}

func barrierOp() operation { return operation{call: engine.Call{Kind: engine.Barrier}} }

func bcastOp(root int, b Buffer) operation {
	return operation{call: rooted(call(engine.Bcast, b, b.Len()), root), recv: b}
}

func reduceOp(root int, send, recv Buffer, op coll.Op) operation {
	return operation{call: rooted(reduction(engine.Reduce, send, send.Len(), op), root), send: send, recv: recv, op: op}
}

func allreduceOp(send, recv Buffer, op coll.Op) operation {
	return operation{call: reduction(engine.Allreduce, send, send.Len(), op), send: send, recv: recv, op: op}
}

func reduceScatterOp(send, recv Buffer, counts []int, op coll.Op) operation {
	o := operation{call: reduction(engine.ReduceScatter, send, send.Len(), op), send: send, recv: recv, counts: counts, op: op}
	o.call.Digest = digest(counts)
	return o
}

func reduceScatterBlockOp(send, recv Buffer, op coll.Op) operation {
	return operation{call: reduction(engine.ReduceScatterBlock, send, recv.Len(), op), send: send, recv: recv, op: op}
}

func allgatherOp(send, recv Buffer) operation {
	return operation{call: call(engine.Allgather, send, send.Len()), send: send, recv: recv}
}

func allgathervOp(send, recv Buffer, counts, displs []int) operation {
	o := operation{call: call(engine.Allgatherv, send, total(counts)), send: send, recv: recv, counts: counts, displs: displs}
	o.call.Digest = digest(counts)
	return o
}

func gatherOp(root int, send, recv Buffer) operation {
	return operation{call: rooted(call(engine.Gather, send, send.Len()), root), send: send, recv: recv}
}

func gathervOp(root int, send, recv Buffer, counts, displs []int) operation {
	return operation{call: rooted(call(engine.Gatherv, send, 0), root), send: send, recv: recv, counts: counts, displs: displs}
}

func scatterOp(root int, send, recv Buffer) operation {
	return operation{call: rooted(call(engine.Scatter, recv, recv.Len()), root), send: send, recv: recv}
}

func scattervOp(root int, send, recv Buffer, counts, displs []int) operation {
	return operation{call: rooted(call(engine.Scatterv, recv, 0), root), send: send, recv: recv, counts: counts, displs: displs}
}

func alltoallOp(send, recv Buffer) operation {
	return operation{call: call(engine.Alltoall, send, send.Len()), send: send, recv: recv}
}

func alltoallvOp(send Buffer, sendCounts, sendDispls []int, recv Buffer, counts, displs []int) operation {
	return operation{call: call(engine.Alltoallv, send, 0), send: send, recv: recv,
		counts: counts, displs: displs, sendCounts: sendCounts, sendDispls: sendDispls}
}

func scanOp(k engine.Collective, send, recv Buffer, op coll.Op) operation {
	return operation{call: reduction(k, send, send.Len(), op), send: send, recv: recv, op: op}
}

func builtin(op Op) coll.Op { return coll.Op{Kind: op} }

func total(counts []int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

// digest returns a number that other counts hardly ever have (FNV-1a, a word at a
// time).
func digest(counts []int) uint32 {
	h := uint64(14695981039346656037)
	for _, c := range counts {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return uint32(h>>32) ^ uint32(h)
}

// do runs o for a blocking call.
func (c *Comm) do(ctx context.Context, o *operation) error {
	err := c.check(o)
	if err == nil {
		err = c.turns.run(ctx, c, o)
	}
	return c.fault(o.call.Kind.String(), -1, err)
}

// check finds what is wrong with o's arguments on this rank, before anything is
// sent.
func (c *Comm) check(o *operation) error {
	k := o.call.Kind
	if o.call.Root < 0 || int(o.call.Root) >= c.Size() {
		return badArgument("root %d: want 0 to %d", o.call.Root, c.Size()-1)
	}
	if err := o.checkOperator(); err != nil {
		return err
	}
	root := c.Rank() == int(o.call.Root)
	switch k {
	case engine.Barrier, engine.Bcast:
		return nil
	case engine.Reduce, engine.Gather, engine.Gatherv:
		if !root {
			return nil // recv means nothing here
		}
	case engine.Scatter, engine.Scatterv:
		if !root {
			return nil // send means nothing here
		}
	}
	if o.send.Type() != o.recv.Type() && o.send.Len() > 0 && o.recv.Len() > 0 {
		return badArgument("send has %v elements and recv %v: want one type", o.send.Type(), o.recv.Type())
	}
	if err := c.checkLengths(o); err != nil {
		return err
	}
	return o.checkAliasing(c.Rank())
}

// checkOperator refuses operators that are not defined for the element type.
func (o *operation) checkOperator() error {
	switch {
	case !o.call.Kind.Reduces():
		return nil
	case o.op.Kind == mem.Custom && o.op.Func == nil:
		return badArgument("no function to combine with")
	case o.op.Kind != mem.Custom && !o.op.Kind.Defined(o.call.Type):
		return badArgument("operator %v is not defined for %v", o.op.Kind, o.call.Type)
	}
	return nil
}

// checkLengths compares the lengths of send and recv with each other and with
// the counts.
func (c *Comm) checkLengths(o *operation) error {
	p, me := c.Size(), c.Rank()
	s, r := o.send.Len(), o.recv.Len()
	switch o.call.Kind {
	case engine.Reduce, engine.Allreduce, engine.Scan, engine.Exscan:
		return checkLen("recv", r, "send", s)
	case engine.ReduceScatterBlock:
		return checkLen("send", s, "ranks x recv", p*r)
	case engine.ReduceScatter:
		if err := checkCounts("counts", p, o.counts, nil, s); err != nil {
			return err
		}
		if err := checkLen("send", s, "sum of counts", total(o.counts)); err != nil {
			return err
		}
		return checkLen("recv", r, "counts[rank]", o.counts[me])
	case engine.Allgather, engine.Gather:
		return checkLen("recv", r, "ranks x send", p*s)
	case engine.Allgatherv, engine.Gatherv:
		if err := checkCounts("recv", p, o.counts, o.displs, r); err != nil {
			return err
		}
		return checkLen("send", s, "counts[rank]", o.counts[me])
	case engine.Scatter:
		return checkLen("send", s, "ranks x recv", p*r)
	case engine.Scatterv:
		if err := checkCounts("send", p, o.counts, o.displs, s); err != nil {
			return err
		}
		return checkLen("recv", r, "counts[rank]", o.counts[me])
	case engine.Alltoall:
		if s%p != 0 {
			return badArgument("send has %d elements: want a multiple of the %d ranks", s, p)
		}
		return checkLen("recv", r, "send", s)
	case engine.Alltoallv:
		if err := checkCounts("send", p, o.sendCounts, o.sendDispls, s); err != nil {
			return err
		}
		if err := checkCounts("recv", p, o.counts, o.displs, r); err != nil {
			return err
		}
		return checkLen("counts[rank]", o.counts[me], "sendCounts[rank]", o.sendCounts[me])
	}
	return nil
}

func checkLen(what string, got int, of string, want int) error {
	if got != want {
		return badArgument("%s has %d elements: want %d (%s)", what, got, want, of)
	}
	return nil
}

// checkCounts checks the blocks of a vector of n elements: one per rank, inside
// it. nil displacements mean that the blocks follow each other.
func checkCounts(what string, p int, counts, displs []int, n int) error {
	if len(counts) != p || displs != nil && len(displs) != p {
		return badArgument("%d counts and %d displacements for %s: want %d, displacements may be nil", len(counts), len(displs), what, p)
	}
	end := 0
	for i, k := range counts {
		if displs != nil {
			end = displs[i]
		}
		if k < 0 || end < 0 || end > n || k > n-end {
			return badArgument("block %d of %s has %d elements from %d on: want it inside the %d there are", i, what, k, end, n)
		}
		end += k
	}
	return nil
}
