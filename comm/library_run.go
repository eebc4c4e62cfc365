package comm

import "gompi/comm/internal/engine"

// What the devices' library is given to do, and how its end is waited for.

// do does o by the group.
func (l *library) do(w way, o *operation) (err error) {
	if o.unlike() {
		err = l.agree(w, o)
	}
	if err == nil {
		l.marked = false
		err = l.give(o)
	}
	if err == nil {
		err = w.Attend(l.done)
	}
	if err != nil {
		return l.fail(err)
	}
	return nil
}

// give gives o to the group.
func (l *library) give(o *operation) error {
	g, root, op := l.group, int(o.call.Root), o.op.Kind
	switch o.call.Kind {
	case engine.Allreduce:
		return g.Allreduce(o.send, o.recv, op)
	case engine.Reduce:
		return g.Reduce(root, o.send, o.recv, op)
	case engine.Bcast:
		return g.Bcast(root, o.recv)
	case engine.ReduceScatter, engine.ReduceScatterBlock:
		return g.ReduceScatter(o.send, o.recv, op)
	case engine.Allgather:
		return g.Allgather(o.send, o.recv)
	}
	o.blocks(l.c.Rank(), l.out, l.in)
	defer clear(l.out)
	defer clear(l.in)
	return g.Exchange(l.out, l.in)
}

// finished reports whether the library has done what it was given last. If it has, errors
// are of what comes later: what fails does not end before it is aborted.
func (l *library) finished() (bool, error) {
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
func (l *library) fail(err error) error {
	group := l.group
	l.group, l.useless = nil, true
	if group != nil {
		if late := group.Abort(); late != nil {
			l.c.log.Warn("NCCL has not ended", "comm", l.c.name, "err", late)
		}
	}
	return err
}

// unlike reports whether two ranks alone know how long the blocks are that they exchange.
func (o *operation) unlike() bool {
	switch o.call.Kind {
	case engine.Gatherv, engine.Scatterv, engine.Alltoallv:
		return true
	}
	return false
}

// agree finds out whether each rank sends this one as much as it expects.
func (l *library) agree(w way, o *operation) error {
	o.blocks(l.c.Rank(), l.out, l.in)
	defer clear(l.out)
	defer clear(l.in)
	for r := range l.out {
		l.sent[r] = int64(l.out[r].Size())
	}
	if err := w.Alltoall(Of(l.sent), Of(l.due)); err != nil {
		return err
	}
	for r, n := range l.due {
		if want := l.in[r].Size(); int(n) != want {
			return w.DisagreeOn(r, want, int(n))
		}
	}
	return nil
}

// blocks fills in what rank me sends to each rank, and what it receives from each.
func (o *operation) blocks(me int, out, in []Buffer) {
	root := int(o.call.Root)
	block := func(b Buffer, counts, displs []int, r int) Buffer {
		n := b.Len() / len(out)
		at := r * n
		if counts != nil {
			n, at = counts[r], total(counts[:r])
		}
		if displs != nil {
			at = displs[r]
		}
		return b.Slice(at, at+n)
	}
	for r := range out {
		switch o.call.Kind {
		case engine.Gather, engine.Gatherv:
			if r == root {
				out[r] = o.send
			}
			if me == root {
				in[r] = block(o.recv, o.counts, o.displs, r)
			}
		case engine.Scatter, engine.Scatterv:
			if me == root {
				out[r] = block(o.send, o.counts, o.displs, r)
			}
			if r == root {
				in[r] = o.recv
			}
		case engine.Allgatherv:
			out[r], in[r] = o.send, block(o.recv, o.counts, o.displs, r)
		case engine.Alltoall, engine.Alltoallv:
			out[r], in[r] = block(o.send, o.sendCounts, o.sendDispls, r), block(o.recv, o.counts, o.displs, r)
		}
	}
}
