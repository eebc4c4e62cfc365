package exec

import (
	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/mem"
)

// A collective by NCCL, from its enqueueing to its end.

// do runs o by NCCL.
func (l *NCCL) do(o *call.Call) (err error) {
	if o.Kind.LocalCounts() {
		err = l.agreeLengths(o)
	}
	if err == nil {
		l.recorded = false
		err = l.enqueue(o)
	}
	if err == nil {
		err = l.x.Round.PollUntil(l.done)
	}
	if err != nil {
		return l.fail(err)
	}
	return nil
}

// enqueue puts o on the group's stream.
func (l *NCCL) enqueue(o *call.Call) error {
	g, root, op := l.group, o.Root, o.Op.Kind
	switch o.Kind {
	case calls.Allreduce:
		return g.Allreduce(o.Send, o.Recv, op)
	case calls.Reduce:
		return g.Reduce(root, o.Send, o.Recv, op)
	case calls.Bcast:
		return g.Bcast(root, o.Recv)
	case calls.ReduceScatter, calls.ReduceScatterBlock:
		return g.ReduceScatter(o.Send, o.Recv, op)
	case calls.Allgather:
		return g.Allgather(o.Send, o.Recv)
	}
	o.Exchange(l.x.Rank, l.out, l.in)
	defer clear(l.out)
	defer clear(l.in)
	return g.Exchange(l.out, l.in)
}

// finished reports whether the last collective is done. A failed one does not end until aborted.
func (l *NCCL) finished() (bool, error) {
	if l.recorded {
		if done, err := l.end.Done(); done || err != nil {
			return done, err
		}
	}
	placed, err := l.group.Placed()
	if err == nil && placed && !l.recorded {
		err = l.end.Set()
		l.recorded = err == nil
	}
	return false, err
}

// fail aborts NCCL's communicator because of err. After fail, NCCL touches no buffer any more.
func (l *NCCL) fail(err error) error {
	group := l.group
	l.group = nil
	l.x.Paths.DropNCCL()
	if group != nil {
		if late := group.Abort(); late != nil {
			l.warn("NCCL has not ended", late)
		}
	}
	return err
}

// agreeLengths checks that each rank sends as much as this rank expects.
func (l *NCCL) agreeLengths(o *call.Call) error {
	o.Exchange(l.x.Rank, l.out, l.in)
	defer clear(l.out)
	defer clear(l.in)
	for r := range l.out {
		l.sent[r] = int64(l.out[r].Len())
	}
	if err := l.x.runOnHost(new(call.Call).Alltoall(mem.Of(l.sent), mem.Of(l.due))); err != nil {
		return err
	}
	for r, n := range l.due {
		if want := l.in[r].Len(); int(n) != want {
			return l.x.Round.DisagreeOn(r, want, int(n))
		}
	}
	return nil
}
