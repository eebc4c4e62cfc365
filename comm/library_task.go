package comm

import (
	"gompi/comm/internal/engine"
	"gompi/internal/mem"
)

// What the devices' library is given to do, and how its end is waited for.

// A task is a collective that the library was given.
type task struct {
	l      *library
	before mem.Mark             // of the stream in whose order it is, if it was given ahead of its turn
	end    mem.Mark             // of the group's queue: behind it
	placed bool                 // it is there, and end behind it
	err    error                // of giving it ahead, which its turn tells
	done   func() (bool, error) // asks whether it is
}

// do does o by the group.
func (l *library) do(w way, o *operation) error {
	if o.unlike() {
		if err := l.agree(w, o); err != nil {
			return l.fail(err)
		}
	}
	t, err := l.begin(o)
	if err != nil {
		return l.fail(err)
	}
	err = l.await(w, t)
	l.end(t)
	return err
}

// begin gives o to the group.
func (l *library) begin(o *operation) (*task, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t, err := l.task()
	if err == nil {
		err = l.give(o)
	}
	return t, err
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

// task returns a task to be given, for end to take back. l.mu is held, as for the group.
func (l *library) task() (*task, error) {
	if n := len(l.idle); n > 0 {
		t := l.idle[n-1]
		l.idle = l.idle[:n-1]
		return t, nil
	}
	end, err := l.group.Queue().NewMark()
	if err != nil {
		return nil, err
	}
	t := &task{l: l, end: end}
	t.done = t.finished
	return t, nil
}

func (l *library) end(t *task) {
	t.placed, t.before, t.err = false, nil, nil
	l.mu.Lock()
	l.idle = append(l.idle, t)
	l.mu.Unlock()
}

// await waits until the library has done t.
func (l *library) await(w way, t *task) error {
	if err := w.Attend(t.done); err != nil {
		return l.fail(err)
	}
	return nil
}

// finished reports whether the library has done t. If it has, errors are of what comes
// later: what fails does not end before it is aborted.
func (t *task) finished() (bool, error) {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	if t.err != nil {
		return false, t.err
	}
	if t.placed {
		if done, err := t.end.Done(); done || err != nil {
			return done, err
		}
	}
	return false, t.place()
}

// place marks the end of t when it is on the queue. Later it asks for errors alone.
func (t *task) place() error {
	placed, err := t.l.group.Placed()
	if err == nil && placed && !t.placed {
		err = t.end.Set()
		t.placed = err == nil
	}
	return err
}

// placed reports whether the group has done what it was told last.
func (l *library) placed() (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.group.Placed()
}

// fail ends the group because of err: when it returns, the device does nothing with
// anybody's buffers any more.
func (l *library) fail(err error) error {
	l.mu.Lock()
	group := l.group
	l.group, l.useless = nil, true
	l.mu.Unlock()
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
