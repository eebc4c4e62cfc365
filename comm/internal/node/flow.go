package node

import (
	"encoding/binary"

	"gompi/comm/internal/call"
	"gompi/comm/internal/path"
	"gompi/internal/mem"
)

// A flow is a collective in which every element is read from where the member that
// it comes from has stored it: each but a long allreduce.
type flow struct {
	send, recv []byte
	typ        mem.Type
	out        layout // of send: a block for each member if split, else one for all
	in         layout // of recv: a block from each member, or only one
	split      bool
	single     bool // recv has one block, whoever it comes from
	writes     bool // this member sends
	lo, hi     int  // it reads from the members lo to hi-1, itself included
	full       bool // every member reads from every other
	overwrites bool // recv is where others read send
	met        bool // the members' calls have been compared in a step before

	fold bool // what is read is combined, into one block
	op   call.Op
	scan bool // in the order of a scan
	// staged says that this member's own operand is read from where it has stored
	// it: the result may be stored over it before all is combined.
	staged bool

	most  int // elements of the longest block of all members
	piece int // elements of each block that go in one step
	far   bool
	past  bool // what is received is stored past the caches
	forks bool // what the others will read is stored to recv at the same time
}

// size returns the bytes of an element, 1 where there are none.
func (f *flow) size() int { return max(f.typ.Size(), 1) }

// run runs a flow whose fields but the last four are set, as p says.
func (r *Room) run(p *path.Path, f *flow) error {
	if p.Algorithm == path.OneStep {
		return r.once(f)
	}
	size, parts := f.size(), 1
	if f.split {
		parts = r.size()
	}
	total := f.most * size * parts
	p, err := r.buffer(p, &f.met)
	if err != nil {
		return err
	}
	f.far = p.Ask == path.LargeBuffers
	f.past = r.footprint(f) >= pastFrom
	f.forks = f.writes && f.full && !f.split && !f.fold
	f.piece = max(p.Piece.Of(total)/size/parts, 1)
	steps := max((f.most+f.piece-1)/f.piece, 1)
	first, last := r.step+1, r.step+uint64(steps)
	r.step = last
	ahead := r.ahead(f.piece*size*parts, f.far)
	filled := first - 1
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
		r.hasRead(s)
	}
	return nil
}

// once runs a flow that takes one step.
func (r *Room) once(f *flow) error {
	f.piece = max(f.most, 1)
	r.step++
	s := r.step
	if err := r.fill(f, s, s); err != nil {
		return err
	}
	if f.full {
		if err := r.assemble(s); err != nil {
			return err
		}
	}
	if err := r.take(f, s, s); err != nil {
		return err
	}
	if f.full {
		r.free = s - 1 // all have begun this one: they have read what was before
	} else {
		r.hasRead(s)
	}
	return nil
}

// ahead returns how many steps of n bytes a member fills before it reads the first:
// half of the ring, so that what others read has left its cache.
func (r *Room) ahead(n int, far bool) uint64 {
	g := &r.near
	if far {
		g = &r.far
	}
	return max(min(g.size/2/uint64(max(n, lineSize)), depth/2), 1)
}

// buffer returns the Path that is taken: p, or another if that wants the far ring and there is
// no memory for it. The first collective that wants it claims it, in a step in which all tell
// whether they could; their calls are compared in it.
func (r *Room) buffer(p *path.Path, met *bool) (*path.Path, error) {
	if p.Ask != path.LargeBuffers {
		return p, nil
	}
	if !r.asked {
		r.asked = true
		if err := r.claimAll(*met); err != nil {
			return nil, err
		}
		*met = true
	}
	if r.far.size == 0 {
		return p.Otherwise, nil
	}
	return p, nil
}

func (r *Room) claimAll(met bool) error {
	r.step++
	s := r.step
	r.lay(s, 1, false)
	h, err := r.acquire(s)
	if err != nil {
		return err
	}
	if h.call.A = 0; !met {
		r.sign(h)
	}
	if h.small[0] = 1; r.claim() != nil {
		h.small[0] = 0
	}
	r.publish(h, s)
	all := h.small[0]
	for j := range r.parts {
		if j == r.me {
			continue
		}
		h := r.head(j, s)
		if met {
			err = r.await(&h.step, s, j)
		} else {
			_, err = r.meet(j, s)
		}
		if err != nil {
			return err
		}
		all &= h.small[0]
	}
	r.free = s - 1
	if all == 0 {
		r.far.size = 0
	}
	return nil
}

// each returns the bytes of one member's part of a step that begins with element lo.
func (f *flow) each(lo int) int { return min(f.piece, f.most-lo) * f.typ.Size() }

// fill fills step s, if there is something to fill it with.
func (r *Room) fill(f *flow, s, first uint64) error {
	lo := int(s-first) * f.piece
	total := f.each(lo)
	if f.split {
		total *= r.size()
	}
	r.lay(s, total, f.far)
	begins := s == first && !f.met
	if !f.writes && !begins {
		return nil
	}
	h, err := r.acquire(s)
	if err != nil {
		return err
	}
	if h.call.A = 0; begins {
		r.sign(h)
	}
	if f.writes {
		r.pack(f, s, lo)
	}
	r.publish(h, s)
	return nil
}

// pack copies what goes to the others, from element lo of each block on.
func (r *Room) pack(f *flow, s uint64, lo int) {
	if !f.split {
		b := f.part(f.send, f.out, 0, lo)
		to := r.payload(r.me, s, 0, len(b))
		if f.forks {
			r.fork(f, f.part(f.recv, f.in, r.me, lo), to, b)
		} else {
			r.reach.Copy(to, b)
		}
		return
	}
	each := f.each(lo)
	for j := range r.parts {
		if j != r.me || f.staged {
			b := f.part(f.send, f.out, j, lo)
			r.reach.Copy(r.payload(r.me, s, j*each, len(b)), b)
		}
	}
}

// part returns the piece of a block from element lo on.
func (f *flow) part(b []byte, l layout, block, lo int) []byte {
	size := f.typ.Size()
	count, start := l.count(block), l.start(block)
	if l.v != nil && l.v.each != nil {
		b, start = l.v.each[block].Raw().HostSlice(), 0
	}
	lo = min(lo, count)
	return b[(start+lo)*size : (start+min(lo+f.piece, count))*size]
}

// read returns the n bytes that member j has for this one in step s, when they
// are there.
func (r *Room) read(f *flow, j int, s, first uint64, n, lo int) (b []byte, err error) {
	switch {
	case j == r.me:
	case s == first && !f.met:
		_, err = r.meet(j, s)
	default:
		err = r.await(&r.head(j, s).step, s, j)
	}
	off := 0
	if f.split {
		off = r.me * f.each(lo)
	}
	return r.payload(j, s, off, n), err
}

// take reads what there is for this member in step s.
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
		dst := f.part(f.recv, f.in, block, lo)
		if j == r.me {
			if own := f.own(r.me, lo); !f.forks && len(own) > 0 && &own[0] != &dst[0] {
				deliver(dst, own, f.past)
			}
			continue
		}
		src, err := r.read(f, j, s, first, len(dst), lo)
		if err != nil {
			return err
		}
		deliver(dst, src, f.past)
	}
	return nil
}

// own returns what this member has for itself from element lo on.
func (f *flow) own(me, lo int) []byte {
	if !f.split {
		me = 0
	}
	return f.part(f.send, f.out, me, lo)
}

// takeFolding reads step s and combines what is in it.
func (r *Room) takeFolding(f *flow, s, first uint64, lo int) error {
	if f.lo == f.hi {
		return nil
	}
	b := f.part(f.recv, f.in, 0, lo)
	n := len(b) / f.typ.Size()
	for j := f.lo; j < f.hi; j++ {
		src := b
		var err error
		if j == r.me && !f.staged {
			src = f.own(r.me, lo)
		} else if src, err = r.read(f, j, s, first, len(b), lo); err != nil {
			return err
		}
		r.srcs[j] = mem.HostBytes(f.typ, n, src)
	}
	dst := mem.HostBytes(f.typ, n, b)
	return r.combineTo(f, dst)
}

// agree makes the members of a v form know the longest block: each tells the
// lengths of those that it sends, counts, by receiver or only one. It takes a step,
// in which their calls are compared.
func (r *Room) agree(f *flow, counts []int) error {
	r.step++
	s := r.step
	r.lay(s, 8+8*r.size(), false)
	h, err := r.acquire(s)
	if err != nil {
		return err
	}
	r.sign(h)
	for i, n := range counts {
		f.most = max(f.most, n)
		putCount(r.payload(r.me, s, 8+8*i, 8), n)
	}
	putCount(r.payload(r.me, s, 0, 8), f.most)
	r.publish(h, s)
	for j := range r.parts {
		if j == r.me {
			continue
		}
		if _, err := r.meet(j, s); err != nil {
			return err
		}
		f.most = max(f.most, count(r.payload(j, s, 0, 8)))
		if f.lo <= j && j < f.hi {
			if err := r.checkCount(f, j, s); err != nil {
				return err
			}
		}
	}
	r.free, f.met = s-1, true
	return nil
}

// checkCount compares how much member j sends here with what is expected.
func (r *Room) checkCount(f *flow, j int, s uint64) error {
	which, block := 0, j
	if f.split {
		which = r.me
	}
	if f.single {
		block = 0
	}
	mine, theirs := f.in.count(block), count(r.payload(j, s, 8+8*which, 8))
	if mine == theirs {
		return nil
	}
	return r.port.DisagreeOn(j, mine*f.typ.Size(), theirs*f.typ.Size())
}

func putCount(b []byte, n int) { binary.NativeEndian.PutUint64(b, uint64(n)) }
func count(b []byte) int       { return int(binary.NativeEndian.Uint64(b)) }

// bytesOf returns the bytes of host memory, and none of others: what Devices move.
func bytesOf(b mem.Buffer) []byte {
	if !b.IsHost() {
		return nil
	}
	return b.HostSlice()
}

// A layout says where blocks lie in a buffer. It has two words, for the reason that
// mem.Buffer has four.
type layout struct {
	each int     // elements of every block, one after the other
	v    *blocks // where blocks differ, else nil
}

type blocks struct {
	counts, starts []int
	each           []mem.Buffer // in the place of starts, where each block is a buffer of its own
}

func (l layout) count(block int) int {
	if l.v == nil {
		return l.each
	}
	return l.v.counts[block]
}

func (l layout) start(block int) int {
	if l.v == nil {
		return block * l.each
	}
	return l.v.starts[block]
}

// placed returns the layout of blocks of counts elements at displs, or one after
// the other if displs is nil. A collective has two, 0 and 1.
func (r *Room) placed(which int, counts, displs []int) layout {
	b := &r.blocks[which]
	*b = blocks{counts: counts, starts: displs}
	if displs != nil {
		return layout{v: b}
	}
	r.starts[which] = r.starts[which][:0]
	at := 0
	for _, n := range counts {
		r.starts[which] = append(r.starts[which], at)
		at += n
	}
	b.starts = r.starts[which]
	return layout{v: b}
}

// apart returns the layout of blocks of bytes that are buffers of their own.
func (r *Room) apart(which int, each []mem.Buffer) layout {
	counts := make([]int, len(each))
	for i, b := range each {
		counts[i] = b.Size()
	}
	l := r.placed(which, counts, nil)
	l.v.each = each
	return l
}
