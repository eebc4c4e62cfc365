package node

import (
	"encoding/binary"
	"unsafe"

	"gompi/comm/internal/coll"
	"gompi/internal/mem"
)

// A flow is a collective in which every element is read from the slot of the
// member it comes from: each but a long allreduce.
type flow struct {
	send, recv mem.Buffer
	out        layout // of send: a block for each member if split, else one for all
	in         layout // of recv: a block from each member, or only one
	split      bool
	single     bool // recv has one block, whoever it comes from
	writes     bool // this member sends
	lo, hi     int  // it reads from the members lo to hi-1, itself included
	full       bool // every member reads from every other
	most       int  // elements of the longest block of all members
	piece      int  // elements of each block that go in one step
	met        bool // the members' calls have been compared in a step before

	fold bool // what is read is combined, into one block
	op   coll.Op
	scan bool // in the order of a scan
	// staged says that this member's own operand is read from its slot: the result
	// may be stored over it before all is combined.
	staged bool
}

// ahead is how many steps a member fills before it reads: enough for its slots to
// be on their way while others fill theirs, and less than depth.
const ahead = depth / 2

// run runs a flow whose fields but piece are set.
func (r *Room) run(f *flow) error {
	f.piece = r.pieceOf(f)
	steps := max((f.most+f.piece-1)/f.piece, 1)
	first, last := r.step+1, r.step+uint64(steps)
	r.step = last
	filled := r.step - uint64(steps)
	for s := first; s <= last; s++ {
		for ; filled < min(last, s+ahead-1); filled++ {
			if err := r.fill(f, filled+1, first); err != nil {
				return err
			}
		}
		if s == first && steps > 1 && !f.met {
			// A long collective must not end before it is known that all others
			// do the same: they would count other steps from then on.
			if err := r.meetAll(first); err != nil {
				return err
			}
		}
		if err := r.take(f, s, first); err != nil {
			return err
		}
		if steps > 1 || !f.full {
			r.hasRead(s)
		}
	}
	if f.full && steps == 1 {
		r.free = last - 1 // all have begun this one: they have read what was before
	}
	return nil
}

// pieceOf returns how many elements of each block go in one step.
func (r *Room) pieceOf(f *flow) int {
	size := max(f.send.Type().Size(), f.recv.Type().Size(), 1)
	if f.split {
		return r.chunk / size / r.size()
	}
	return r.chunk / size
}

// fill fills the own slot of step s, if there is something to fill it with.
func (r *Room) fill(f *flow, s, first uint64) error {
	begins := s == first && !f.met
	if !f.writes && !begins {
		return nil
	}
	h, err := r.acquire(s)
	if err != nil {
		return err
	}
	if h.call[0] = 0; begins {
		r.sign(h)
	}
	if f.writes {
		r.pack(f, h, int(s-first)*f.piece)
	}
	r.store(&h.step, s)
	return nil
}

// pack copies what goes to the others, from element lo of each block on.
func (r *Room) pack(f *flow, h *head, lo int) {
	if !f.split {
		b := f.out.part(f.send, 0, lo, f.piece).HostSlice()
		copy(payload(h, len(b), 0, len(b)), b)
		return
	}
	each := f.each()
	for j := range r.blocks {
		if j != r.me || f.staged {
			b := f.out.part(f.send, j, lo, f.piece).HostSlice()
			copy(payload(h, each*r.size(), j*each, len(b)), b)
		}
	}
}

// each returns the bytes of one member's part of a split slot.
func (f *flow) each() int {
	return min(f.piece, f.most) * max(f.send.Type().Size(), f.recv.Type().Size())
}

// read returns the n bytes that member j has for this one in step s, when they
// are there.
func (r *Room) read(f *flow, j int, s, first uint64, n int) ([]byte, error) {
	h := r.slot(j, s)
	var err error
	switch {
	case j == r.me:
	case s == first && !f.met:
		_, err = r.meet(j, s)
	default:
		err = r.await(&h.step, s, j)
	}
	if err != nil {
		return nil, err
	}
	if f.split {
		return payload(h, f.each()*r.size(), r.me*f.each(), n), nil
	}
	return payload(h, n, 0, n), nil
}

// take reads the slots of step s.
func (r *Room) take(f *flow, s, first uint64) error {
	lo := int(s-first) * f.piece
	if f.fold {
		return r.takeFolding(f, s, first, lo)
	}
	for i := f.lo; i < f.hi; i++ {
		j := i
		if f.hi-f.lo == r.size() {
			j = (r.me + i) % r.size() // so that not all read from the same one
		}
		block := j
		if f.single {
			block = 0
		}
		dst := f.in.part(f.recv, block, lo, f.piece)
		if j == r.me {
			if own := f.own(r.me, lo); !mem.Same(own, dst) {
				copy(dst.HostSlice(), own.HostSlice())
			}
			continue
		}
		src, err := r.read(f, j, s, first, dst.Size())
		if err != nil {
			return err
		}
		copy(dst.HostSlice(), src)
	}
	return nil
}

// own returns what this member has for itself from element lo on.
func (f *flow) own(me, lo int) mem.Buffer {
	if f.split {
		return f.out.part(f.send, me, lo, f.piece)
	}
	return f.out.part(f.send, 0, lo, f.piece)
}

// takeFolding reads the slots of step s and combines what is in them.
func (r *Room) takeFolding(f *flow, s, first uint64, lo int) error {
	if f.lo == f.hi {
		return nil
	}
	dst := f.in.part(f.recv, 0, lo, f.piece)
	for j := f.lo; j < f.hi; j++ {
		if j == r.me && !f.staged {
			r.srcs[j] = f.own(r.me, lo)
			continue
		}
		src, err := r.read(f, j, s, first, dst.Size())
		if err != nil {
			return err
		}
		r.srcs[j] = mem.HostBytes(dst.Type(), dst.Len(), src)
	}
	if err := r.combine(f, dst); err != nil {
		return err
	}
	return f.op.Finish(dst, f.hi-f.lo)
}

// combine stores the combination of the operands into dst.
func (r *Room) combine(f *flow, dst mem.Buffer) (err error) {
	result := dst
	switch {
	case !r.keepsOrder(f.op):
		return mem.Host.Reduce(f.op.Kind.Base(), dst, r.srcs[f.lo:f.hi]...)
	case f.scan:
		result, err = r.window(f.op, dst, f.hi-1, height(f.hi))
	default:
		result, err = r.tree(f.op, dst, f.lo, f.hi)
	}
	if err == nil && !mem.Same(result, dst) {
		copy(dst.HostSlice(), result.HostSlice())
	}
	return err
}

// agree makes the members of a v form know the longest block: each tells the
// lengths of those that it sends, counts, by receiver or only one. It takes a step,
// in which their calls are compared.
func (r *Room) agree(f *flow, counts []int) error {
	s := r.step + 1
	r.step = s
	h, err := r.acquire(s)
	if err != nil {
		return err
	}
	r.sign(h)
	for i, n := range counts {
		f.most = max(f.most, n)
		putCount(payload(h, r.chunk, 8*i, 8), n)
	}
	putCount(h.small[:8], f.most)
	r.store(&h.step, s)
	for j := range r.blocks {
		if j == r.me {
			continue
		}
		h, err := r.meet(j, s)
		if err != nil {
			return err
		}
		f.most = max(f.most, count(h.small[:8]))
		if f.lo <= j && j < f.hi {
			if err := r.checkCount(f, j, h); err != nil {
				return err
			}
		}
	}
	r.free, f.met = s-1, true
	return nil
}

// checkCount compares how much member j sends here with what is expected.
func (r *Room) checkCount(f *flow, j int, h *head) error {
	which, block := 0, j
	if f.split {
		which = r.me
	}
	if f.single {
		block = 0
	}
	mine, theirs := f.in.count(block), count(payload(h, r.chunk, 8*which, 8))
	if mine == theirs {
		return nil
	}
	size := f.recv.Type().Size()
	return r.port.DisagreeOn(j, mine*size, theirs*size)
}

func putCount(b []byte, n int) { binary.NativeEndian.PutUint64(b, uint64(n)) }
func count(b []byte) int       { return int(binary.NativeEndian.Uint64(b)) }

// payload returns n bytes from off on of h's payload, which has total bytes.
func payload(h *head, total, off, n int) []byte {
	at := unsafe.Pointer(&h.small)
	if total > len(h.small) {
		at = unsafe.Add(unsafe.Pointer(h), headSize)
	}
	return unsafe.Slice((*byte)(unsafe.Add(at, off)), n)
}

// A layout says where blocks lie in a buffer.
type layout struct {
	each           int // elements of every block, one after the other, if counts is nil
	counts, starts []int
}

func (l layout) count(block int) int {
	if l.counts == nil {
		return l.each
	}
	return l.counts[block]
}

// part returns the piece of a block from element lo on.
func (l layout) part(b mem.Buffer, block, lo, piece int) mem.Buffer {
	count, start := l.count(block), block*l.each
	if l.counts != nil {
		start = l.starts[block]
	}
	lo = min(lo, count)
	return b.Slice(start+lo, start+min(lo+piece, count))
}

// placed returns the layout of blocks of counts elements at displs, or one after
// the other if displs is nil, and the longest. A collective has two, 0 and 1.
func (r *Room) placed(which int, counts, displs []int) layout {
	if displs != nil {
		return layout{counts: counts, starts: displs}
	}
	starts, at := r.starts[which][:0], 0
	for _, n := range counts {
		starts = append(starts, at)
		at += n
	}
	r.starts[which] = starts
	return layout{counts: counts, starts: starts}
}
