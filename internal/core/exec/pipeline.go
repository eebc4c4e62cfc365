package exec

import (
	"errors"
	"sync"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// Long collectives of device memory through host memory go in chunks, each the same collective of a
// part of every rank's block, in host memory. While a chunk runs, the next is copied to the host
// and the previous is copied back, and a few chunks of pinned memory suffice for any length. A rank
// whose buffers are in host memory takes part like any other. The messages are the chunks'
// messages, so all ranks have to go this way: they agree before, in whereBuffersAre. No rank knows
// the length of a gatherv, scatterv or alltoallv. Within a host they are staged whole. Between
// hosts each long message goes in chunks by itself, like a message between two ranks, whatever
// memory the other ranks have.

// pipeDepth is the number of chunks under way at a time.
const pipeDepth = 8

// perMessage reports whether a rank with the operands from and to stages no buffers: each message
// is copied from and to the device by itself. Scattered memory is staged: in place, received data
// could overwrite data yet to be sent. So are short blocks: one copy of all costs less than many.
func (x *Exec) perMessage(o *call.Call, from, to mem.Buffer) bool {
	return o.Kind.LocalCounts() && x.Paths.PerMessage(max(from.Size(), to.Size())) && copies(to, from) &&
		!from.IsScattered() && !to.IsScattered()
}

// inPart runs a part of a collective, and then takes back its scratch for the next part.
func (x *Exec) inPart(run func() error) error {
	rd := x.Round
	lent := rd.Lent()
	defer rd.TakeBack(lent)
	return run()
}

// runPipelined runs o in chunks in host memory, each of which is a call of its own.
func (x *Exec) runPipelined(p *path.Path, of *call.Call) error {
	o := new(call.Call) // of stays on its caller's stack
	*o = *of
	send, recv := layouts(o, x.Rank, x.Size)
	longest, blocks := o.Longest(x.Size), o.NumBlocks(x.Size)
	size := o.ElemSize()
	each := max(p.Chunk.Most/size/blocks, 1)
	inPlace := blocks == 1 && send.used() && recv.used()
	f := pipeline{space: placeOf(o), chunks: (longest + each - 1) / each, slot: blocks * each * size}
	halves := func(i int, slot mem.Buffer) (in, out mem.Buffer) {
		in = mem.HostBytes(o.Type, send.count(i, each), slot.HostSlice())
		if inPlace {
			return in, in
		}
		return in, mem.HostBytes(o.Type, recv.count(i, each), slot.HostSlice()[in.Size():])
	}
	_, role := o.Roles(x.Rank)
	f.load = func(i int, slot mem.Buffer) error {
		in, out := halves(i, slot)
		if role == calls.Read { // the root of a bcast
			return recv.copy(out, i, each, false)
		}
		return send.copy(in, i, each, false)
	}
	f.run = func(i int, slot mem.Buffer) error {
		on := *o
		on.Send, on.Recv = halves(i, slot)
		if !recv.used() {
			on.Recv = mem.Buffer{}
		}
		on.SendCounts, on.SendDispls = partOf(o.SendCounts, i, each), nil
		on.RecvCounts, on.RecvDispls = partOf(o.RecvCounts, i, each), nil
		on.Count = o.PartCount(min(each, longest-i*each), longest, on.SendCounts, on.RecvCounts)
		return x.inPart(func() error { return x.runOnHost(&on) })
	}
	f.store = func(i int, slot mem.Buffer) error {
		if !role.Changes() {
			return nil
		}
		_, out := halves(i, slot)
		return recv.copy(out, i, each, true)
	}
	return f.do(x.Staging)
}

// partOf returns the lengths of the i-th parts of blocks of counts elements. A part has each
// elements, the last of a block fewer.
func partOf(counts []int, i, each int) (parts []int) {
	for _, n := range counts {
		parts = append(parts, max(min(n-i*each, each), 0))
	}
	return parts
}

// placeOf returns the device that a buffer of o is in the memory of, mem.Host if there is none.
func placeOf(o *call.Call) mem.Space {
	if !o.Send.OnDevice() {
		return o.Recv.Space()
	}
	return o.Send.Space()
}

// A pipeline loads, runs and stores chunks at the same time, each in a slot of pinned memory.
type pipeline struct {
	space            mem.Space
	chunks, slot     int // their number, and the bytes of a slot
	load, run, store func(i int, slot mem.Buffer) error
}

func (f *pipeline) do(st *Pool) (err error) {
	if f.chunks == 1 {
		return f.alone(st)
	}
	empty, loaded, finished := make(chan mem.Buffer, pipeDepth), make(chan mem.Buffer, pipeDepth),
		make(chan mem.Buffer, pipeDepth)
	for range min(f.chunks, pipeDepth) {
		slot, err := st.Lend(f.space, f.slot)
		if err != nil {
			return err
		}
		defer st.Return(f.space, slot)
		empty <- slot
	}
	quit := make(chan struct{})
	var down, up error
	var copies sync.WaitGroup
	copies.Go(func() {
		defer close(loaded)
		for i := 0; i < f.chunks && down == nil; i++ {
			select {
			case <-quit:
				return
			case slot := <-empty:
				if down = f.load(i, slot); down == nil {
					loaded <- slot
				}
			}
		}
	})
	copies.Go(func() {
		i := 0
		for slot := range finished {
			if up == nil {
				up = f.store(i, slot)
			}
			i++
			empty <- slot
		}
	})
	defer func() { // also if a user's operator panics
		close(quit)
		close(finished)
		copies.Wait()
		err = errors.Join(err, down, up)
	}()
	for i := 0; i < f.chunks && err == nil; i++ {
		slot, ok := <-loaded
		if !ok {
			break
		}
		err = f.run(i, slot)
		finished <- slot
	}
	return err
}

// alone does a single chunk, without other goroutines.
func (f *pipeline) alone(st *Pool) error {
	slot, err := st.Lend(f.space, f.slot)
	if err != nil {
		return err
	}
	defer st.Return(f.space, slot)
	for _, step := range []func(int, mem.Buffer) error{f.load, f.run, f.store} {
		if err := step(0, slot); err != nil {
			return err
		}
	}
	return nil
}
