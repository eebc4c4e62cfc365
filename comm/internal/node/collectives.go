package node

import (
	"fmt"
	"slices"

	"gompi/comm/internal/call"
	"gompi/comm/internal/path"
	"gompi/internal/mem"
)

// Run does o, which all members have called, as p says. Begin comes before.
func (r *Room) Run(p *path.Path, o *call.Call) error {
	if p.Ask == path.SharedHeap {
		if done, err := r.direct(o); done || err != nil {
			return err
		}
		p = p.Otherwise
	}
	switch {
	case o.Kind == call.Allreduce && p.Algorithm == path.OneStep:
		return r.allreduceShort(o.Send, o.Recv, o.Op)
	case o.Kind == call.Allreduce:
		return r.allreduceLong(p, o.Send, o.Recv, o.Op)
	case o.Kind.As() == call.Barrier:
		return r.barrier()
	}
	var f flow
	if err := r.flowOf(o, &f); err != nil {
		return err
	}
	if p.Ask == path.BlockLengths {
		p = r.paths.Sized(o.Kind, f.most*f.size())
	}
	return r.run(p, &f)
}

// direct does o on members' vectors where they lie, if all can be reached.
func (r *Room) direct(o *call.Call) (done bool, err error) {
	switch o.Kind {
	case call.Bcast:
		return r.bcastDirect(o.Root, o.Recv)
	case call.Reduce:
		return r.reduceDirect(o.Root, o.Send, o.Recv, o.Op)
	case call.Allreduce:
		return r.allreduceDirect(o.Send, o.Recv, o.Op)
	case call.Gather:
		return r.gatherDirect(o.Root, o.Send, o.Recv)
	case call.Scatter:
		return r.scatterDirect(o.Root, o.Send, o.Recv)
	}
	var f flow
	if err := r.flowOf(o, &f); err != nil {
		return true, err
	}
	return r.runDirect(&f)
}

// barrier returns when every member has called it.
func (r *Room) barrier() error {
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

// flowOf fills in f, which is zero, with what o moves. Where only some members know how long
// blocks are, they tell each other.
func (r *Room) flowOf(o *call.Call, f *flow) error {
	f.send, f.recv, f.typ, f.op = bytesOf(o.Send), bytesOf(o.Recv), o.Send.Type(), o.Op
	switch o.Kind.As() {
	case call.Bcast:
		f.bcasts(r, o)
	case call.Reduce:
		f.reduces(r, o)
	case call.ReduceScatter:
		f.reduceScatters(r, o, r.placed(0, o.SendCounts, nil), slices.Max(o.SendCounts))
	case call.ReduceScatterBlock:
		f.reduceScatters(r, o, layout{each: o.Recv.Len()}, o.Recv.Len())
	case call.Allgather:
		f.allgathers(r, o, layout{each: o.Send.Len()}, o.Send.Len())
	case call.Allgatherv:
		f.allgathers(r, o, r.placed(0, o.RecvCounts, o.RecvDispls), slices.Max(o.RecvCounts))
	case call.Gather:
		f.most = o.Send.Len()
		f.gathers(r, o, layout{each: o.Send.Len()})
	case call.Gatherv:
		var in layout
		if r.me == o.Root {
			in = r.placed(0, o.RecvCounts, o.RecvDispls)
		}
		f.gathers(r, o, in)
		return r.agree(f, []int{o.Send.Len()})
	case call.Scatter:
		f.most = o.Recv.Len()
		f.scatters(r, o, layout{each: o.Recv.Len()})
	case call.Scatterv:
		if r.me != o.Root {
			f.scatters(r, o, layout{})
			return r.agree(f, nil)
		}
		f.scatters(r, o, r.placed(0, o.SendCounts, o.SendDispls))
		return r.agree(f, o.SendCounts)
	case call.Alltoall:
		n := o.Send.Len() / r.size()
		f.most, f.overwrites = n, mem.Same(o.Send, o.Recv)
		f.exchanges(r, layout{each: n}, layout{each: n})
	case call.Alltoallv:
		f.exchanges(r, r.placed(0, o.SendCounts, o.SendDispls), r.placed(1, o.RecvCounts, o.RecvDispls))
		return r.agree(f, o.SendCounts)
	case call.Alltoallw:
		f.typ = mem.U8
		f.exchanges(r, r.apart(0, o.Each.Send), r.apart(1, o.Each.Recv))
		return r.agree(f, f.out.v.counts)
	case call.Scan:
		f.scans(r, o, r.me+1)
	case call.Exscan:
		f.scans(r, o, r.me)
	default:
		return fmt.Errorf("no algorithm through shared memory for %v", o.Kind)
	}
	return nil
}

// bcasts: the root writes, all read.
func (f *flow) bcasts(r *Room, o *call.Call) {
	l := layout{each: o.Recv.Len()}
	f.typ, f.out, f.in, f.single, f.most = o.Recv.Type(), l, l, true, o.Recv.Len()
	if r.me == o.Root {
		f.send, f.recv, f.writes = f.recv, nil, true
	} else {
		f.send, f.lo, f.hi = nil, o.Root, o.Root+1
	}
}

// reduces: all write, the root combines.
func (f *flow) reduces(r *Room, o *call.Call) {
	l := layout{each: o.Send.Len()}
	f.out, f.most, f.writes = l, o.Send.Len(), true
	if r.me == o.Root {
		f.fold, f.in, f.hi = true, l, r.size()
		f.staged = r.keepsOrder(o.Op)
		f.writes = f.staged
	} else {
		f.recv = nil
	}
}

func (f *flow) reduceScatters(r *Room, o *call.Call, out layout, most int) {
	own, ordered := o.Send.Slice(out.start(r.me), out.start(r.me)+o.Recv.Len()), r.keepsOrder(o.Op)
	f.out, f.in, f.most = out, layout{each: o.Recv.Len()}, most
	f.split, f.writes, f.hi, f.full, f.fold = true, true, r.size(), true, true
	f.overwrites = mem.Overlap(o.Send, o.Recv) && !mem.Same(own, o.Recv)
	f.staged = ordered || mem.Overlap(own, o.Recv) && !mem.Same(own, o.Recv)
}

func (f *flow) allgathers(r *Room, o *call.Call, in layout, most int) {
	f.out, f.in, f.most = layout{each: o.Send.Len()}, in, most
	f.writes, f.hi, f.full = true, r.size(), true
}

func (f *flow) gathers(r *Room, o *call.Call, in layout) {
	f.out = layout{each: o.Send.Len()}
	if r.me == o.Root {
		f.in, f.hi = in, r.size()
	} else {
		f.recv, f.writes = nil, true
	}
}

func (f *flow) scatters(r *Room, o *call.Call, out layout) {
	f.typ, f.in, f.split, f.single = o.Recv.Type(), layout{each: o.Recv.Len()}, true, true
	f.lo, f.hi = o.Root, o.Root+1
	if r.me == o.Root {
		f.out, f.writes = out, true
	} else {
		f.send = nil
	}
}

func (f *flow) exchanges(r *Room, out, in layout) {
	f.out, f.in, f.split, f.writes, f.hi, f.full = out, in, true, true, r.size(), true
}

// scans: each combines the sends of so many members. Exscan leaves recv alone where there are
// none.
func (f *flow) scans(r *Room, o *call.Call, operands int) {
	l, ordered := layout{each: o.Send.Len()}, r.keepsOrder(o.Op)
	f.out, f.in, f.most = l, l, o.Send.Len()
	f.writes = r.me < r.size()-1 || ordered
	f.hi, f.fold, f.scan, f.staged = operands, true, true, ordered
}
