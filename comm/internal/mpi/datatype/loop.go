package datatype

// A loop is a layout: count turns, stride bytes apart, each of which is a run of bytes, or spans,
// or other loops. Regular types are small so, whatever their counts. A type has one layout of
// bytes, in which runs merge where they touch, and one of elements, in which elem says what the
// bytes are.
type loop struct {
	off    int // of the first turn, from the place of the loop
	at     int // where the loop begins in the packed bytes of a turn of the loop around it
	count  int
	stride int
	each   int    // packed bytes of a turn
	spans  []span // either these
	parts  []loop // or these, or neither: then a turn is a run
	elem   *Basic // in a layout by elements: what all bytes below belong to, nil if its parts say that
}

// A span is a run of n bytes.
type span struct{ off, at, n int }

func (l *loop) size() int { return l.count * l.each }

func (l *loop) isRun() bool { return l.count == 1 && l.spans == nil && l.parts == nil }

// fuse returns n turns of l, stride bytes apart, if that needs no loop around l.
func (l *loop) fuse(n, stride int) (fused loop, ok bool) {
	if n == 0 || l.size() == 0 {
		return loop{}, true
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
		return loop{}, false
	}
	return r, true
}

// around returns n turns of a loop, which is inner[0].
func around(inner []loop, n, stride int) loop {
	if fused, ok := inner[0].fuse(n, stride); ok {
		return fused
	}
	return loop{count: n, stride: stride, each: inner[0].size(), parts: inner}
}

// times returns n turns of l.
func (l *loop) times(n, stride int) loop {
	if fused, ok := l.fuse(n, stride); ok {
		return fused
	}
	return around([]loop{*l}, n, stride)
}

// A builder makes a loop of loops that follow each other in the packed bytes.
type builder struct {
	parts []loop
	spans []span // the last part, as long as it consists of runs
	elem  *Basic // of spans
}

func (b *builder) add(l loop) {
	if l.size() == 0 {
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
func (b *builder) flush() {
	if len(b.spans) == 0 {
		return
	}
	first, last := b.spans[0], b.spans[len(b.spans)-1]
	part := loop{count: 1, each: last.at + last.n, spans: b.spans, elem: b.elem}
	if stride, ok := regular(len(b.spans), func(i int) int { return b.spans[i].off }); ok && b.equallyLong() {
		part = loop{off: first.off, count: len(b.spans), stride: stride, each: first.n, elem: b.elem}
	}
	b.parts, b.spans = append(b.parts, part), nil
}

func (b *builder) equallyLong() bool {
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

// loop returns what was added.
func (b *builder) loop() loop {
	b.flush()
	if len(b.parts) == 0 {
		return loop{}
	}
	if stride, ok := regular(len(b.parts), func(i int) int { return b.parts[i].off }); ok && b.equalParts() {
		return b.parts[0].times(len(b.parts), stride)
	}
	whole := loop{count: 1, parts: b.parts}
	for i := range b.parts {
		p := &b.parts[i]
		p.at = whole.each
		whole.each += p.size()
	}
	return whole
}

// equalParts tells whether the parts differ in their places alone.
func (b *builder) equalParts() bool {
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

// same tells whether two slices are one.
func same[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// bounds returns the first byte that l touches, and the one behind the last.
func (l *loop) bounds() (lo, hi int) {
	if l.size() == 0 {
		return 0, 0
	}
	switch {
	case l.parts != nil:
		lo, hi = l.parts[0].bounds()
		for i := range l.parts {
			a, b := l.parts[i].bounds()
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

// elements returns how many elements the first of l's packed bytes are, and how many bytes are
// left. l is a layout by elements, as in bytes.
func (l *loop) elements(bytes int) (n, rest int) {
	if l.elem != nil {
		return bytes / l.elem.Size, bytes % l.elem.Size
	}
	if turns := bytes / l.each; turns > 0 {
		for i := range l.parts {
			all, _ := l.parts[i].elements(l.parts[i].size())
			n += turns * all
		}
	}
	rest = bytes % l.each
	for i := 0; i < len(l.parts) && rest > 0; i++ {
		p := &l.parts[i]
		take := min(rest, p.size())
		some, left := p.elements(take)
		n += some
		if rest -= take; left > 0 {
			return n, left
		}
	}
	return n, rest
}

// bytes returns how many packed bytes the first elements are.
func (l *loop) bytes(elements int) int {
	if l.elem != nil {
		return elements * l.elem.Size
	}
	turn, _ := l.elements(l.each)
	bytes, rest := elements/turn*l.each, elements%turn
	for i := range l.parts {
		p := &l.parts[i]
		all, _ := p.elements(p.size())
		if rest < all {
			return bytes + p.bytes(rest)
		}
		bytes, rest = bytes+p.size(), rest-all
	}
	return bytes
}
