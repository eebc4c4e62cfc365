package exec

import (
	"gompi/comm/internal/call"
	"gompi/internal/mem"
)

// What the devices' library is given to do, and how its end is waited for.

// do does o by the group.
func (l *NCCL) do(o *call.Call) (err error) {
	if o.Kind.LocalCounts() {
		err = l.agree(o)
	}
	if err == nil {
		l.marked = false
		err = l.give(o)
	}
	if err == nil {
		err = l.x.Waits.Attend(l.done)
	}
	if err != nil {
		return l.fail(err)
	}
	return nil
}

// give gives o to the group.
func (l *NCCL) give(o *call.Call) error {
	g, root, op := l.group, o.Root, o.Op.Kind
	switch o.Kind {
	case call.Allreduce:
		return g.Allreduce(o.Send, o.Recv, op)
	case call.Reduce:
		return g.Reduce(root, o.Send, o.Recv, op)
	case call.Bcast:
		return g.Bcast(root, o.Recv)
	case call.ReduceScatter, call.ReduceScatterBlock:
		return g.ReduceScatter(o.Send, o.Recv, op)
	case call.Allgather:
		return g.Allgather(o.Send, o.Recv)
	}
	o.Exchange(l.x.Rank, l.out, l.in)
	defer clear(l.out)
	defer clear(l.in)
	return g.Exchange(l.out, l.in)
}

// finished reports whether the library has done what it was given last. If it has, errors
// are of what comes later: what fails does not end before it is aborted.
func (l *NCCL) finished() (bool, error) {
	if l.marked {
		if done, err := l.end.Done(); done || err != nil {
			return done, err
		}
	}
	placed, err := l.group.Placed()
	if err == nil && placed && !l.marked {
		err = l.end.Set()
		l.marked = err == nil
	}
	return false, err
}

// fail ends the group because of err: when it returns, the device does nothing with
// anybody's buffers any more.
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

// agree finds out whether each rank sends this one as much as it expects.
func (l *NCCL) agree(o *call.Call) error {
	o.Exchange(l.x.Rank, l.out, l.in)
	defer clear(l.out)
	defer clear(l.in)
	for r := range l.out {
		l.sent[r] = int64(l.out[r].Size())
	}
	if err := l.x.runOnHost(new(call.Call).Alltoall(mem.Of(l.sent), mem.Of(l.due))); err != nil {
		return err
	}
	for r, n := range l.due {
		if want := l.in[r].Size(); int(n) != want {
			return l.x.Waits.DisagreeOn(r, want, int(n))
		}
	}
	return nil
}
