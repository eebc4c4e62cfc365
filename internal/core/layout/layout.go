// Package layout describes memory that is not contiguous: the runs of bytes that hold the data,
// in their order. Its functions pack the runs into contiguous memory and unpack them, in whole or
// in part, at the speed of the memory. MPI's datatypes and comm's Layouts are both built on
// Layouts. Memory makes a mem.Buffer of a Layout, which messages and collectives take like any
// other.
//
// A Layout is immutable and may be used by several goroutines. Addresses are numbers, as the
// memory may be C's: a caller that passes an address of Go's memory keeps that memory alive.
package layout

import "slices"

// A Layout is a nest of loops: count turns, stride bytes apart, each of which is a run of bytes,
// or spans, or other Layouts. So regular Layouts are small, whatever their counts. Runs merge
// where they touch. In a Layout by elements, elem is the Element of the bytes. The zero Layout is
// empty.
type Layout struct {
	off    int // of the first turn, from the place of the loop
	at     int // start of the loop in the packed bytes of a turn of the outer loop
	count  int
	stride int
	each   int      // packed bytes of a turn
	spans  []span   // either these
	parts  []Layout // or these, or neither: then a turn is a run
	elem   Element  // in a layout by elements: the Element of all bytes below, nil if the parts have their own
}

// An Element is the kind of element in the runs of a Layout by elements. Elements are compared by
// ==.
type Element interface {
	// Width returns its bytes.
	Width() int
}

// A span is a run of n bytes.
type span struct{ off, at, n int }

// Run returns the Layout of n bytes.
func Run(n int) Layout { return Layout{count: 1, each: n} }

// Of returns l as a Layout by elements, all of which are e.
func (l Layout) Of(e Element) Layout {
	l.elem = e
	return l
}

// At returns l, off bytes further on.
func (l Layout) At(off int) Layout {
	l.off += off
	return l
}

// Size returns the packed bytes.
func (l *Layout) Size() int { return l.count * l.each }

// Contiguous reports whether l is a single run of bytes, and where the run begins.
func (l *Layout) Contiguous() (off int, ok bool) { return l.off, l.isRun() || l.Size() == 0 }

func (l *Layout) isRun() bool { return l.count == 1 && l.spans == nil && l.parts == nil }

// A Loop is Count runs of Each bytes, Stride bytes apart, the first at Off.
type Loop struct{ Off, Count, Each, Stride int }

// Loop returns l as a single loop of runs, if possible.
func (l *Layout) Loop() (o Loop, ok bool) {
	return Loop{l.off, l.count, l.each, l.stride}, l.spans == nil && l.parts == nil
}

// Layout returns the Layout of o.
func (o Loop) Layout() Layout {
	return Layout{off: o.Off, count: o.Count, each: o.Each, stride: o.Stride}
}

// fuse returns n turns of l, stride bytes apart, if that needs no loop around l.
func (l *Layout) fuse(n, stride int) (fused Layout, ok bool) {
	if n == 0 || l.Size() == 0 {
		return Layout{}, true
	}
	r := *l
	switch {
	case n == 1:
	case l.isRun() && stride == l.each:
		r.each *= n
	case l.count == 1:
		r.count, r.stride = n, stride
	case stride == l.count*l.stride:
		r.count *= n
	default:
		return Layout{}, false
	}
	return r, true
}

// Around returns n turns of inner[0], its only element, stride bytes apart. Around does not
// allocate.
func Around(inner []Layout, n, stride int) Layout {
	if fused, ok := inner[0].fuse(n, stride); ok {
		return fused
	}
	return Layout{count: n, stride: stride, each: inner[0].Size(), parts: inner}
}

// Times returns n turns of l, stride bytes apart.
func (l *Layout) Times(n, stride int) Layout {
	if fused, ok := l.fuse(n, stride); ok {
		return fused
	}
	return Around([]Layout{*l}, n, stride)
}

// A Builder makes a Layout of Layouts that follow each other in the packed bytes.
type Builder struct {
	parts []Layout
	spans []span  // the last part, while it consists of runs
	elem  Element // of spans
}

// Add adds l at the end.
func (b *Builder) Add(l Layout) {
	if l.Size() == 0 {
		return
	}
	if !l.isRun() {
		b.flush()
		b.parts = append(b.parts, l)
		return
	}
	if b.elem != l.elem {
		b.flush()
	}
	b.elem = l.elem
	k := len(b.spans) - 1
	switch {
	case k < 0:
		b.spans = append(b.spans, span{l.off, 0, l.each})
	case b.spans[k].off+b.spans[k].n == l.off:
		b.spans[k].n += l.each
	default:
		b.spans = append(b.spans, span{l.off, b.spans[k].at + b.spans[k].n, l.each})
	}
}

// flush makes a part of the spans.
func (b *Builder) flush() {
	if len(b.spans) == 0 {
		return
	}
	first, last := b.spans[0], b.spans[len(b.spans)-1]
	part := Layout{count: 1, each: last.at + last.n, spans: b.spans, elem: b.elem}
	if stride, ok := regular(len(b.spans), func(i int) int { return b.spans[i].off }); ok && b.equallyLong() {
		part = Layout{off: first.off, count: len(b.spans), stride: stride, each: first.n, elem: b.elem}
	}
	b.parts, b.spans = append(b.parts, part), nil
}

func (b *Builder) equallyLong() bool {
	for _, s := range b.spans {
		if s.n != b.spans[0].n {
			return false
		}
	}
	return true
}

// regular tells whether n offsets have a stride.
func regular(n int, off func(int) int) (stride int, ok bool) {
	if n > 1 {
		stride = off(1) - off(0)
	}
	for i := 2; i < n; i++ {
		if off(i)-off(i-1) != stride {
			return 0, false
		}
	}
	return stride, true
}

// Layout returns the Layout of all that was added.
func (b *Builder) Layout() Layout {
	b.flush()
	if len(b.parts) == 0 {
		return Layout{}
	}
	if stride, ok := regular(len(b.parts), func(i int) int { return b.parts[i].off }); ok && b.equalParts() {
		return b.parts[0].Times(len(b.parts), stride)
	}
	whole := Layout{count: 1, parts: b.parts}
	for i := range b.parts {
		p := &b.parts[i]
		p.at = whole.each
		whole.each += p.Size()
	}
	return whole
}

// equalParts reports whether the parts differ only in their places.
func (b *Builder) equalParts() bool {
	first := &b.parts[0]
	for i := range b.parts {
		p := &b.parts[i]
		if p.count != first.count || p.stride != first.stride || p.each != first.each || p.elem != first.elem ||
			!same(p.spans, first.spans) || !same(p.parts, first.parts) {
			return false
		}
	}
	return true
}

// same tells whether two slices are the same memory.
func same[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// Bounds returns the first byte that l touches, and the byte after the last.
func (l *Layout) Bounds() (lo, hi int) {
	if l.Size() == 0 {
		return 0, 0
	}
	switch {
	case l.parts != nil:
		lo, hi = l.parts[0].Bounds()
		for i := range l.parts {
			a, b := l.parts[i].Bounds()
			lo, hi = min(lo, a), max(hi, b)
		}
	case l.spans != nil:
		lo, hi = l.spans[0].off, l.spans[0].off
		for _, s := range l.spans {
			lo, hi = min(lo, s.off), max(hi, s.off+s.n)
		}
	default:
		hi = l.each
	}
	far := (l.count - 1) * l.stride
	return l.off + lo + min(0, far), l.off + hi + max(0, far)
}

// Elements returns the number of whole elements in the first of l's packed bytes, and the number of
// bytes left. l is a Layout by elements, as in Bytes.
func (l *Layout) Elements(bytes int) (n, rest int) {
	if l.elem != nil {
		return bytes / l.elem.Width(), bytes % l.elem.Width()
	}
	if turns := bytes / l.each; turns > 0 {
		for i := range l.parts {
			all, _ := l.parts[i].Elements(l.parts[i].Size())
			n += turns * all
		}
	}
	rest = bytes % l.each
	for i := 0; i < len(l.parts) && rest > 0; i++ {
		p := &l.parts[i]
		take := min(rest, p.Size())
		some, left := p.Elements(take)
		n += some
		if rest -= take; left > 0 {
			return n, left
		}
	}
	return n, rest
}

// Bytes returns the number of packed bytes of the first elements.
func (l *Layout) Bytes(elements int) int {
	if l.elem != nil {
		return elements * l.elem.Width()
	}
	turn, _ := l.Elements(l.each)
	bytes, rest := elements/turn*l.each, elements%turn
	for i := range l.parts {
		p := &l.parts[i]
		all, _ := p.Elements(p.Size())
		if rest < all {
			return bytes + p.Bytes(rest)
		}
		bytes, rest = bytes+p.Size(), rest-all
	}
	return bytes
}

// Runs calls do for the runs of a Layout by elements, in the order of the packed bytes, with each
// run's offset, its bytes and its Element.
func (l *Layout) Runs(do func(off, n int, e Element)) { l.runs(0, nil, do) }

// runs is Runs of a part that is at off, of elements unless that is nil.
func (l *Layout) runs(off int, elem Element, do func(off, n int, e Element)) {
	if l.elem != nil {
		elem = l.elem
	}
	off += l.off
	for range l.count {
		switch {
		case l.parts != nil:
			for i := range l.parts {
				l.parts[i].runs(off, elem, do)
			}
		case l.spans != nil:
			for _, s := range l.spans {
				do(off+s.off, s.n, elem)
			}
		default:
			do(off, l.each, elem)
		}
		off += l.stride
	}
}

// Scaled returns l with each byte in the place of k.
func (l Layout) Scaled(k int) Layout {
	l.off, l.at, l.stride, l.each = l.off*k, l.at*k, l.stride*k, l.each*k
	l.spans, l.parts = slices.Clone(l.spans), slices.Clone(l.parts)
	for i := range l.spans {
		s := &l.spans[i]
		s.off, s.at, s.n = s.off*k, s.at*k, s.n*k
	}
	for i := range l.parts {
		l.parts[i] = l.parts[i].Scaled(k)
	}
	return l
}

// Complexity returns the depth of the nest of loops, and the number of runs and parts that are
// listed individually.
func (l *Layout) Complexity() (loops, listed int) {
	listed = len(l.spans)
	if len(l.parts) > 1 {
		listed += len(l.parts)
	}
	for i := range l.parts {
		deep, more := l.parts[i].Complexity()
		loops, listed = max(loops, deep), listed+more
	}
	return loops + 1, listed
}
