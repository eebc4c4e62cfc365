package exec

import (
	"errors"
	"sync"

	"gompi/comm/internal/call"
	"gompi/comm/internal/path"
	"gompi/comm/internal/staging"
	"gompi/internal/mem"
)

// Long collectives of device memory through that of hosts: instead of all being copied
// there, then combined or sent, then copied back, pieces go after each other, so that both
// copies take place during the rest, and a few pieces of pinned memory do for any length.
// Each is the same collective of a part of every rank's block, in host memory. So
// processors combine what comes from other hosts, as their algorithms do, and a rank
// whose memory is the host's takes part like any other. Where several ranks share a
// host, an allreduce is combined on their devices first, and each copies its share
// alone (package hier).
//
// That changes the messages, so all ranks have to do it: they ask each other, if one
// of them may have devices and the collective is long. Within one host they have asked
// already, and a collective of any length goes so. Of gatherv, scatterv and
// alltoallv no rank knows how long they are: within a host they are staged whole, and
// between hosts each of their messages goes in pieces by itself if it is long, as one
// between two ranks does, whatever the others have.

// pipeDepth pieces are under way at a time: half of them on their way to the host, half back.
const pipeDepth = 8

// perMessage reports whether a rank that sends from and receives to leaves it to messages to
// bring them from devices and to them: each long one goes in pieces by itself. Shorter ones are
// staged: one copy of all blocks costs less than one of each.
func perMessage(o *call.Call, from, to mem.Buffer) bool {
	return o.Kind.LocalCounts() && max(from.Size(), to.Size()) >= path.PerMessageFrom && copies(to, from)
}

// pipeShares is an allreduce on several hosts, of which each rank combines a share on the
// devices of its host: only between hosts does it go through the hosts' memory.
func (x *Exec) pipeShares(p *path.Path, o *call.Call) error {
	h := x.Hier
	from, _ := h.Share(o.Send)
	mine, counts := h.Share(o.Recv)
	if x.Devices != nil {
		in := new(call.Call).ReduceScatter(o.Send, mine, counts, o.Op.Base())
		if err := x.Devices.Run(in); err != nil {
			return err
		}
		from = mine
	}
	if h.OnRail() {
		if err := x.pipeShare(p, from, mine, o.Op); err != nil {
			return err
		}
	}
	if x.Devices == nil {
		return nil
	}
	return x.Devices.Run(new(call.Call).Allgatherv(mine, o.Recv, counts, nil))
}

// pipeShare combines the vectors src, one of each host, by op, and stores the result of
// all ranks' into dst, which is src or apart from it.
func (x *Exec) pipeShare(p *path.Path, src, dst mem.Buffer, op call.Op) error {
	n := src.Len()
	piece := max(p.Piece.Of(src.Size())/src.Type().Size(), 1)
	part := func(b mem.Buffer, i int) mem.Buffer { return b.Slice(i*piece, min((i+1)*piece, n)) }
	f := flow{space: src.Space(), pieces: (n + piece - 1) / piece, room: piece * src.Type().Size()}
	f.load = func(i int, room mem.Buffer) error { return mem.Copy(within(room, part(src, i)), part(src, i)) }
	f.store = func(i int, room mem.Buffer) error { return mem.Copy(part(dst, i), within(room, part(dst, i))) }
	f.run = func(i int, room mem.Buffer) error {
		here := within(room, part(src, i))
		if err := x.inPart(func() error { return x.Hier.OverRail(new(call.Call).Allreduce(here, here, op.Base())) }); err != nil {
			return err
		}
		return op.Finish(here, x.Size)
	}
	return f.do(x.Staging)
}

// inPart runs a part of a collective, and takes back the scratch that it took: those to
// come would take as much again.
func (x *Exec) inPart(run func() error) error {
	rd := x.Round
	lent := rd.Lent()
	defer rd.TakeBack(lent)
	return run()
}

// within returns room's beginning as long as b, and of its type.
func within(room, b mem.Buffer) mem.Buffer { return mem.HostBytes(b.Type(), b.Len(), room.HostSlice()) }

// pipe does o in pieces of host memory, each of which is a call of its own.
func (x *Exec) pipe(p *path.Path, of *call.Call) error {
	o := new(call.Call) // of stays on its caller's stack
	*o = *of
	send, recv := strips(o, x.Rank, x.Size)
	longest, blocks := o.Longest(x.Size), o.NumBlocks(x.Size)
	size := o.Type.Size()
	each := max(p.Piece.Most/size/blocks, 1)
	inPlace := blocks == 1 && send.used() && recv.used()
	f := flow{space: placeOf(o), pieces: (longest + each - 1) / each, room: blocks * each * size}
	halves := func(i int, room mem.Buffer) (in, out mem.Buffer) {
		in = mem.HostBytes(o.Type, send.count(i, each), room.HostSlice())
		if inPlace {
			return in, in
		}
		return in, mem.HostBytes(o.Type, recv.count(i, each), room.HostSlice()[in.Size():])
	}
	_, role := o.Roles(x.Rank)
	f.load = func(i int, room mem.Buffer) error {
		in, out := halves(i, room)
		if role == call.Read { // the root of a bcast
			return recv.copy(out, i, each, false)
		}
		return send.copy(in, i, each, false)
	}
	f.run = func(i int, room mem.Buffer) error {
		on := *o
		on.Send, on.Recv = halves(i, room)
		if !recv.used() {
			on.Recv = mem.Buffer{}
		}
		on.SendCounts, on.SendDispls = partOf(o.SendCounts, i, each), nil
		on.RecvCounts, on.RecvDispls = partOf(o.RecvCounts, i, each), nil
		on.Count = o.PartCount(min(each, longest-i*each), longest, on.SendCounts, on.RecvCounts)
		return x.inPart(func() error { return x.runOnHost(&on) })
	}
	f.store = func(i int, room mem.Buffer) error {
		if !role.Changes() {
			return nil
		}
		_, out := halves(i, room)
		return recv.copy(out, i, each, true)
	}
	return f.do(x.Staging)
}

// partOf returns the lengths of the i-th parts of blocks of counts elements, of which each
// takes so many.
func partOf(counts []int, i, each int) (parts []int) {
	for _, n := range counts {
		parts = append(parts, max(min(n-i*each, each), 0))
	}
	return parts
}

// placeOf returns a device that has a buffer of o, Host if there is none.
func placeOf(o *call.Call) mem.Space {
	if o.Send.IsHost() {
		return o.Recv.Space()
	}
	return o.Send.Space()
}

// A flow is pieces that are loaded, run and stored, each in one of a few rooms of pinned
// memory: while one is run, others are loaded and stored.
type flow struct {
	space            mem.Space
	pieces, room     int // their number, and the bytes of a room
	load, run, store func(i int, room mem.Buffer) error
}

func (f *flow) do(st *staging.Pool) (err error) {
	if f.pieces == 1 {
		return f.alone(st)
	}
	empty, loaded, finished := make(chan mem.Buffer, pipeDepth), make(chan mem.Buffer, pipeDepth), make(chan mem.Buffer, pipeDepth)
	for range min(f.pieces, pipeDepth) {
		room, err := st.Lend(f.space, f.room)
		if err != nil {
			return err
		}
		defer st.Return(f.space, room)
		empty <- room
	}
	quit := make(chan struct{})
	var down, up error
	var copies sync.WaitGroup
	copies.Go(func() {
		defer close(loaded)
		for i := 0; i < f.pieces && down == nil; i++ {
			select {
			case <-quit:
				return
			case room := <-empty:
				if down = f.load(i, room); down == nil {
					loaded <- room
				}
			}
		}
	})
	copies.Go(func() {
		i := 0
		for room := range finished {
			if up == nil {
				up = f.store(i, room)
			}
			i++
			empty <- room
		}
	})
	defer func() { // also if a function of the user's panics
		close(quit)
		close(finished)
		copies.Wait()
		err = errors.Join(err, down, up)
	}()
	for i := 0; i < f.pieces && err == nil; i++ {
		room, ok := <-loaded
		if !ok {
			break
		}
		err = f.run(i, room)
		finished <- room
	}
	return err
}

// alone does a single piece, for which nobody has to be woken.
func (f *flow) alone(st *staging.Pool) error {
	room, err := st.Lend(f.space, f.room)
	if err != nil {
		return err
	}
	defer st.Return(f.space, room)
	for _, step := range []func(int, mem.Buffer) error{f.load, f.run, f.store} {
		if err := step(0, room); err != nil {
			return err
		}
	}
	return nil
}
