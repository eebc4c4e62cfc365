package node

import (
	"slices"

	"gompi/comm/internal/coll"
	"gompi/internal/mem"
)

// The collectives. Arguments are as package coll has them; Begin comes before.

// Barrier returns when every member has called it.
func (r *Room) Barrier() error {
	r.step++
	r.lay(r.step, 0, false)
	h, err := r.acquire(r.step)
	if err != nil {
		return err
	}
	r.sign(h)
	r.publish(h, r.step)
	if err := r.meetAll(r.step); err != nil {
		return err
	}
	r.free = r.step - 1
	return nil
}

// Bcast copies the root's b to the others': the root writes, all read.
func (r *Room) Bcast(root int, b mem.Buffer) error {
	if r.mayBeDirect(b.Size()) {
		if done, err := r.bcastDirect(root, b); done || err != nil {
			return err
		}
	}
	l := layout{each: b.Len()}
	f := &flow{typ: b.Type(), out: l, in: l, single: true, most: b.Len()}
	if r.me == root {
		f.send, f.writes = bytesOf(b), true
	} else {
		f.recv, f.lo, f.hi = bytesOf(b), root, root+1
	}
	return r.run(f)
}

// Reduce combines the sends into the root's recv: all write, the root combines.
func (r *Room) Reduce(root int, send, recv mem.Buffer, op coll.Op) error {
	if r.mayBeDirect(send.Size()) {
		if done, err := r.reduceDirect(root, send, recv, op); done || err != nil {
			return err
		}
	}
	l := layout{each: send.Len()}
	f := &flow{send: bytesOf(send), typ: send.Type(), out: l, most: send.Len(), writes: true}
	if r.me == root {
		f.fold, f.op, f.recv, f.in, f.hi = true, op, bytesOf(recv), l, r.size()
		f.staged = r.keepsOrder(op)
		f.writes = f.staged
	}
	return r.run(f)
}

// Allreduce combines the sends into everybody's recv.
func (r *Room) Allreduce(send, recv mem.Buffer, op coll.Op) error {
	if r.mayBeDirect(send.Size()) {
		if done, err := r.allreduceDirect(send, recv, op); done || err != nil {
			return err
		}
	}
	if send.Size() > r.directMost() {
		return r.allreduceLong(send, recv, op)
	}
	return r.allreduceShort(send, recv, op)
}

// ReduceScatterBlock combines the sends and gives each member its block.
func (r *Room) ReduceScatterBlock(send, recv mem.Buffer, op coll.Op) error {
	return r.reduceScatter(layout{each: recv.Len()}, recv.Len(), send, recv, op)
}

// ReduceScatter is ReduceScatterBlock with blocks of counts elements.
func (r *Room) ReduceScatter(send, recv mem.Buffer, counts []int, op coll.Op) error {
	return r.reduceScatter(r.placed(0, counts, nil), slices.Max(counts), send, recv, op)
}

func (r *Room) reduceScatter(out layout, most int, send, recv mem.Buffer, op coll.Op) error {
	own := send.Slice(out.start(r.me), out.start(r.me)+recv.Len())
	return r.run(&flow{send: bytesOf(send), recv: bytesOf(recv), typ: recv.Type(), out: out, in: layout{each: recv.Len()},
		split: true, most: most, writes: true, hi: r.size(), full: true, fold: true, op: op,
		known: !r.keepsOrder(op), overwrites: mem.Overlap(send, recv) && !mem.Same(own, recv),
		staged: r.keepsOrder(op) || mem.Overlap(own, recv) && !mem.Same(own, recv)})
}

// Allgather copies every send to everybody's recv.
func (r *Room) Allgather(send, recv mem.Buffer) error {
	return r.allgather(layout{each: send.Len()}, send.Len(), send, recv)
}

// Allgatherv is Allgather with blocks of counts elements at displs of recv.
func (r *Room) Allgatherv(send, recv mem.Buffer, counts, displs []int) error {
	return r.allgather(r.placed(0, counts, displs), slices.Max(counts), send, recv)
}

func (r *Room) allgather(in layout, most int, send, recv mem.Buffer) error {
	return r.run(&flow{send: bytesOf(send), recv: bytesOf(recv), typ: send.Type(), out: layout{each: send.Len()}, in: in, most: most,
		writes: true, hi: r.size(), full: true, known: true})
}

// Gather copies every send to the root's recv.
func (r *Room) Gather(root int, send, recv mem.Buffer) error {
	if r.mayBeDirect(send.Size()) {
		if done, err := r.gatherDirect(root, send, recv); done || err != nil {
			return err
		}
	}
	f := flow{most: send.Len()}
	f.gathers(r, root, layout{each: send.Len()}, send, recv)
	return r.run(&f)
}

// Gatherv is Gather with blocks of counts elements at displs of recv.
func (r *Room) Gatherv(root int, send, recv mem.Buffer, counts, displs []int) error {
	var in layout
	if r.me == root {
		in = r.placed(0, counts, displs)
	}
	var f flow
	f.gathers(r, root, in, send, recv)
	if err := r.agree(&f, []int{send.Len()}); err != nil {
		return err
	}
	return r.run(&f)
}

func (f *flow) gathers(r *Room, root int, in layout, send, recv mem.Buffer) {
	f.send, f.typ, f.out = bytesOf(send), send.Type(), layout{each: send.Len()}
	if r.me == root {
		f.recv, f.in, f.hi = bytesOf(recv), in, r.size()
	} else {
		f.writes = true
	}
}

// Scatter copies each member's block of the root's send to its recv.
func (r *Room) Scatter(root int, send, recv mem.Buffer) error {
	if r.mayBeDirect(recv.Size()) {
		if done, err := r.scatterDirect(root, send, recv); done || err != nil {
			return err
		}
	}
	f := flow{most: recv.Len()}
	f.scatters(r, root, layout{each: recv.Len()}, send, recv)
	return r.run(&f)
}

// Scatterv is Scatter with blocks of counts elements at displs of send.
func (r *Room) Scatterv(root int, send, recv mem.Buffer, counts, displs []int) error {
	var out layout
	if r.me == root {
		out = r.placed(0, counts, displs)
	} else {
		counts = nil
	}
	var f flow
	f.scatters(r, root, out, send, recv)
	if err := r.agree(&f, counts); err != nil {
		return err
	}
	return r.run(&f)
}

func (f *flow) scatters(r *Room, root int, out layout, send, recv mem.Buffer) {
	f.recv, f.typ, f.in = bytesOf(recv), recv.Type(), layout{each: recv.Len()}
	f.split, f.single, f.lo, f.hi = true, true, root, root+1
	if r.me == root {
		f.send, f.out, f.writes = bytesOf(send), out, true
	}
}

// Alltoall copies block i of member j's send to block j of member i's recv.
func (r *Room) Alltoall(send, recv mem.Buffer) error {
	n := send.Len() / r.size()
	return r.run(&flow{send: bytesOf(send), recv: bytesOf(recv), typ: send.Type(), out: layout{each: n}, in: layout{each: n}, split: true, most: n,
		writes: true, hi: r.size(), full: true, known: true, overwrites: mem.Same(send, recv)})
}

// Alltoallv is Alltoall with blocks of any length.
func (r *Room) Alltoallv(send mem.Buffer, sendCounts, sendDispls []int, recv mem.Buffer, counts, displs []int) error {
	f := &flow{send: bytesOf(send), recv: bytesOf(recv), typ: send.Type(), out: r.placed(0, sendCounts, sendDispls), in: r.placed(1, counts, displs),
		split: true, writes: true, hi: r.size(), full: true}
	if err := r.agree(f, sendCounts); err != nil {
		return err
	}
	return r.run(f)
}

// Scan combines the sends of the members up to this one into recv.
func (r *Room) Scan(send, recv mem.Buffer, op coll.Op) error { return r.scan(r.me+1, send, recv, op) }

// Exscan combines the sends of the members below this one into recv, which is left
// alone where there are none.
func (r *Room) Exscan(send, recv mem.Buffer, op coll.Op) error { return r.scan(r.me, send, recv, op) }

func (r *Room) scan(operands int, send, recv mem.Buffer, op coll.Op) error {
	l := layout{each: send.Len()}
	return r.run(&flow{send: bytesOf(send), recv: bytesOf(recv), typ: send.Type(), out: l, in: l, most: send.Len(),
		writes: r.me < r.size()-1 || r.keepsOrder(op), hi: operands, fold: true, op: op, scan: true, staged: r.keepsOrder(op)})
}
