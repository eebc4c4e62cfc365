package node

// How collectives of Devices go: the movements of a step, and the steps of a flow and of
// an allreduce.

import (
	"slices"
	"sync/atomic"

	"gompi/comm/internal/call"
	"gompi/internal/mem"
)

// leave ends the movements of a collective: when it returns, the device does nothing with
// the collective's buffers any more.
func (d *Devices) leave(err *error) {
	if *err != nil {
		for _, q := range d.queues {
			q.Sync() // its error would be another's consequence
		}
		d.busy = [movements]bool{}
	}
	d.send, d.recv = mem.Buffer{}, mem.Buffer{}
}

// pieceOf returns how many elements of most go in one step, of each of the parts of a
// slot.
func (d *Devices) pieceOf(most, size, parts int) int {
	return max(min(most, (d.slot/parts&^(deviceLine-1))/size), 1)
}

// held returns n bytes of a member's slot of step s from off on.
func (d *Devices) held(member int, s uint64, off, n int) mem.Buffer {
	at := int(s%slots)*d.slot + off
	return d.arenas[member].Slice(at, at+n)
}

// lay gives step s its slot, and returns when this member may fill it.
func (d *Devices) lay(s uint64) error {
	r := d.room
	r.lay(s, 0, false)
	p := &r.at[s%depth]
	p.after = max(p.after, s-min(s, slots))
	h, err := r.acquire(s)
	if err == nil {
		h.call.A = 0
	}
	return err
}

// on returns a movement's queue, to put work on.
func (d *Devices) on(movement int) mem.Queue {
	d.busy[movement] = true
	return d.queues[movement]
}

// done stores step s into word, for the others, when a movement's queue is done.
func (d *Devices) done(movement int, word *atomic.Uint64, s uint64) error {
	if d.busy[movement] {
		d.busy[movement] = false
		if err := d.queues[movement].Sync(); err != nil {
			return err
		}
	}
	d.room.store(word, s)
	return nil
}

// rounds makes the movements of n elements, of which a step takes a piece. They are
// given the step and its first element. reduce may be nil.
func (d *Devices) rounds(n, piece int, fill, reduce, take func(s uint64, lo int) error) error {
	r := d.room
	steps := max((n+piece-1)/piece, 1)
	first, own := r.step+1, r.parts[r.me].lines
	r.step += uint64(steps)
	lag := 1
	if reduce != nil {
		lag = 2
	}
	for i := range steps + lag {
		moves := [movements]struct {
			start func(s uint64, lo int) error
			step  int
			word  *atomic.Uint64
		}{
			filling:  {fill, i, &r.head(r.me, first+uint64(i)).step},
			reducing: {reduce, i - 1, &own.made},
			taking:   {take, i - lag, &own.read},
		}
		for _, m := range moves {
			if m.start != nil && m.step >= 0 && m.step < steps {
				if err := m.start(first+uint64(m.step), m.step*piece); err != nil {
					return err
				}
			}
		}
		for k, m := range moves {
			if m.start != nil && m.step >= 0 && m.step < steps {
				if err := d.done(k, m.word, first+uint64(m.step)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// combine puts op's result of the Room's srcs lo to hi-1 on a movement's queue.
func (d *Devices) combine(movement int, op call.Op, dst mem.Buffer, lo, hi int) error {
	return d.on(movement).Reduce(op.Kind, dst, d.room.srcs[lo:hi]...)
}

// run is the Room's run.
func (d *Devices) run(f *flow) (err error) {
	defer d.leave(&err)
	parts := 1
	if f.split {
		parts = d.room.size()
	}
	f.piece = d.pieceOf(f.most, max(f.typ.Size(), 1), parts)
	fill := func(s uint64, lo int) error { return d.fill(f, s, lo) }
	take := func(s uint64, lo int) error { return d.take(f, s, lo) }
	return d.rounds(f.most, f.piece, fill, nil, take)
}

// piecemeal returns the piece of a block from element lo on.
func (f *flow) piecemeal(b mem.Buffer, l layout, block, lo int) mem.Buffer {
	count, start := l.count(block), l.start(block)
	lo = min(lo, count)
	return b.Slice(start+lo, start+min(lo+f.piece, count))
}

// stride returns how far the parts of a slot are from each other, for the step that
// begins with element lo.
func (f *flow) stride(lo int) int { return (f.each(lo) + deviceLine - 1) &^ (deviceLine - 1) }

func (d *Devices) fill(f *flow, s uint64, lo int) error {
	if err := d.lay(s); err != nil || !f.writes {
		return err
	}
	me, q := d.room.me, d.on(filling)
	if !f.split {
		b := f.piecemeal(d.send, f.out, 0, lo).Raw()
		return q.Copy(d.held(me, s, 0, b.Len()), b)
	}
	for j := range d.arenas {
		if j == me && !f.staged {
			continue
		}
		b := f.piecemeal(d.send, f.out, j, lo).Raw()
		if err := q.Copy(d.held(me, s, j*f.stride(lo), b.Len()), b); err != nil {
			return err
		}
	}
	return nil
}

// read returns the n bytes that member j has for this one in step s, when they are
// there.
func (d *Devices) read(f *flow, j int, s uint64, n, lo int) (mem.Buffer, error) {
	off := 0
	if f.split {
		off = d.room.me * f.stride(lo)
	}
	if j == d.room.me { // filled in a round before
		return d.held(j, s, off, n), nil
	}
	return d.held(j, s, off, n), d.room.await(&d.room.head(j, s).step, s, j)
}

func (d *Devices) take(f *flow, s uint64, lo int) error {
	if f.fold {
		return d.takeFolding(f, s, lo)
	}
	r, q := d.room, d.on(taking)
	for i := f.lo; i < f.hi; i++ {
		j := i
		if f.hi-f.lo == r.size() {
			j = (r.me + i) % r.size() // so that not all read from the same one
		}
		block := j
		if f.single {
			block = 0
		}
		dst := f.piecemeal(d.recv, f.in, block, lo).Raw()
		src, err := dst, error(nil)
		if j != r.me {
			src, err = d.read(f, j, s, dst.Len(), lo)
		} else if d.send.Len() > 0 {
			src = d.own(f, lo).Raw()
		}
		if err == nil && !mem.Same(dst, src) {
			err = q.Copy(dst, src)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// own returns what this member has for itself from element lo on.
func (d *Devices) own(f *flow, lo int) mem.Buffer {
	me := 0
	if f.split {
		me = d.room.me
	}
	return f.piecemeal(d.send, f.out, me, lo)
}

func (d *Devices) takeFolding(f *flow, s uint64, lo int) error {
	if f.lo == f.hi {
		return nil
	}
	r := d.room
	dst := f.piecemeal(d.recv, f.in, 0, lo)
	for j := f.lo; j < f.hi; j++ {
		if j == r.me && !f.staged {
			r.srcs[j] = d.own(f, lo)
			continue
		}
		b, err := d.read(f, j, s, dst.Size(), lo)
		if err != nil {
			return err
		}
		r.srcs[j] = b.As(dst)
	}
	return d.combine(taking, f.op, dst, f.lo, f.hi)
}

// allreduce is the Room's allreduce, of what Meet was given. A worker reads its own
// share from its buffer and does not store it for others.
func (d *Devices) allreduce(op call.Op) (err error) {
	defer d.leave(&err)
	n := d.send.Len()
	piece := d.pieceOf(n, d.send.Type().Size(), 1)
	mine := slices.Index(d.workers, d.room.me)
	end := func(lo int) int { return min(lo+piece, n) }
	fill := func(s uint64, lo int) error { return d.fillShares(s, lo, end(lo), mine) }
	reduce := func(s uint64, lo int) error { return d.reduceShare(s, lo, end(lo), mine, op) }
	take := func(s uint64, lo int) error { return d.takeShares(s, lo, end(lo)) }
	return d.rounds(n, piece, fill, reduce, take)
}

// share returns the elements of a worker's share of the step of elements base to
// end-1.
func (d *Devices) share(base, end, worker int) (lo, hi int) {
	lo, hi = mem.Share(end-base, len(d.workers), deviceLine/d.send.Type().Size(), worker)
	return base + lo, base + hi
}

// stored returns where a member stores elements lo to hi-1 of the step s that begins
// with element base.
func (d *Devices) stored(member int, s uint64, base, lo, hi int) mem.Buffer {
	size := d.send.Type().Size()
	return d.held(member, s, (lo-base)*size, (hi-lo)*size)
}

func (d *Devices) fillShares(s uint64, base, end, mine int) error {
	if err := d.lay(s); err != nil {
		return err
	}
	lo, hi := end, end // what is not stored
	if mine >= 0 {
		lo, hi = d.share(base, end, mine)
	}
	me, q := d.room.me, d.on(filling)
	err := q.Copy(d.stored(me, s, base, base, lo), d.send.Slice(base, lo).Raw())
	if err == nil && hi < end {
		err = q.Copy(d.stored(me, s, base, hi, end), d.send.Slice(hi, end).Raw())
	}
	return err
}

func (d *Devices) reduceShare(s uint64, base, end, mine int, op call.Op) error {
	if mine < 0 {
		return nil
	}
	r := d.room
	lo, hi := d.share(base, end, mine)
	for j := range r.parts {
		if j == r.me {
			r.srcs[j] = d.send.Slice(lo, hi)
			continue
		}
		if err := r.await(&r.head(j, s).step, s, j); err != nil {
			return err
		}
		r.srcs[j] = d.stored(j, s, base, lo, hi).As(d.send)
	}
	return d.combine(reducing, op, d.stored(r.me, s, base, lo, hi).As(d.send), 0, r.size())
}

func (d *Devices) takeShares(s uint64, base, end int) error {
	r := d.room
	for i, w := range d.workers {
		if w != r.me {
			if err := r.await(&r.parts[w].lines.made, s, w); err != nil {
				return err
			}
		}
		lo, hi := d.share(base, end, i)
		if err := d.on(taking).Copy(d.recv.Slice(lo, hi).Raw(), d.stored(w, s, base, lo, hi)); err != nil {
			return err
		}
	}
	return nil
}
