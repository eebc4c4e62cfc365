package comm

import (
	"context"

	"gompi/comm/internal/coll"
	"gompi/comm/internal/engine"
	"gompi/internal/mem"
)

// An operation is one collective with its arguments. It is a value, so that a
// blocking call keeps it on its stack and a persistent request in itself. The
// methods named after collectives fill in a zero one, where it lies: copied right
// after its fields were stored, so large a struct stalls the processor (10 ns of an
// allreduce).
type operation struct {
	call                   engine.Call
	send, recv             Buffer
	root                   int // as the caller gave it: call's is cut to 32 bits
	op                     coll.Op
	counts, displs         []int // of the vector that has one block per rank
	sendCounts, sendDispls []int // of alltoallv's second such vector
}

// is says what o does with count elements like b's.
func (o *operation) is(k engine.Collective, b Buffer, count int) {
	o.call.Kind, o.call.Type, o.call.Count = k, b.Type(), int64(count)
}

func (o *operation) at(root int) { o.root, o.call.Root = root, int32(root) }

func (o *operation) by(op coll.Op) { o.op, o.call.Op = op, op.Kind }

func (o *operation) barrier() { o.call.Kind = engine.Barrier }

func (o *operation) bcast(root int, b Buffer) {
	o.is(engine.Bcast, b, b.Len())
	o.at(root)
	o.recv = b
}

func (o *operation) reduce(root int, send, recv Buffer, op coll.Op) {
	o.is(engine.Reduce, send, send.Len())
	o.at(root)
	o.by(op)
	o.send, o.recv = send, recv
}

func (o *operation) allreduce(send, recv Buffer, op coll.Op) {
	o.is(engine.Allreduce, send, send.Len())
	o.by(op)
	o.send, o.recv = send, recv
}

func (o *operation) reduceScatter(send, recv Buffer, counts []int, op coll.Op) {
	o.is(engine.ReduceScatter, send, send.Len())
	o.by(op)
	o.send, o.recv, o.counts, o.call.Digest = send, recv, counts, digest(counts)
}

func (o *operation) reduceScatterBlock(send, recv Buffer, op coll.Op) {
	o.is(engine.ReduceScatterBlock, send, recv.Len())
	o.by(op)
	o.send, o.recv = send, recv
}

func (o *operation) allgather(send, recv Buffer) {
	o.is(engine.Allgather, send, send.Len())
	o.send, o.recv = send, recv
}

func (o *operation) allgatherv(send, recv Buffer, counts, displs []int) {
	o.is(engine.Allgatherv, send, total(counts))
	o.send, o.recv, o.counts, o.displs, o.call.Digest = send, recv, counts, displs, digest(counts)
}

func (o *operation) gather(root int, send, recv Buffer) {
	o.is(engine.Gather, send, send.Len())
	o.at(root)
	o.send, o.recv = send, recv
}

func (o *operation) gatherv(root int, send, recv Buffer, counts, displs []int) {
	o.is(engine.Gatherv, send, 0)
	o.at(root)
	o.send, o.recv, o.counts, o.displs = send, recv, counts, displs
}

func (o *operation) scatter(root int, send, recv Buffer) {
	o.is(engine.Scatter, recv, recv.Len())
	o.at(root)
	o.send, o.recv = send, recv
}

func (o *operation) scatterv(root int, send, recv Buffer, counts, displs []int) {
	o.is(engine.Scatterv, recv, 0)
	o.at(root)
	o.send, o.recv, o.counts, o.displs = send, recv, counts, displs
}

func (o *operation) alltoall(send, recv Buffer) {
	o.is(engine.Alltoall, send, send.Len())
	o.send, o.recv = send, recv
}

func (o *operation) alltoallv(send Buffer, sendCounts, sendDispls []int, recv Buffer, counts, displs []int) {
	o.is(engine.Alltoallv, send, 0)
	o.send, o.sendCounts, o.sendDispls = send, sendCounts, sendDispls
	o.recv, o.counts, o.displs = recv, counts, displs
}

func (o *operation) scan(k engine.Collective, send, recv Buffer, op coll.Op) {
	o.is(k, send, send.Len())
	o.by(op)
	o.send, o.recv = send, recv
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

// bytes returns the size of the longer of o's buffers on this rank.
func (o *operation) bytes() int { return max(o.send.Size(), o.recv.Size()) }

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
	if o.root < 0 || o.root >= c.Size() {
		return badArgument("root %d: want 0 to %d", o.root, c.Size()-1)
	}
	if err := o.checkOperator(); err != nil {
		return err
	}
	root := c.Rank() == o.root
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
