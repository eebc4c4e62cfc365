package layout

import (
	"sort"
	"unsafe"
)

// A cursor copies between laid-out memory and a part of its packed bytes.
type cursor struct {
	buf    []byte // the rest of the buffer
	skip   int    // packed bytes before buf
	unpack bool
}

// Pack copies the packed bytes of l after the first skip, with l at base, to dst. The result is
// the number of bytes copied: len(dst), or all there are.
func (l *Layout) Pack(dst []byte, base uintptr, skip int) int {
	c := cursor{buf: dst, skip: skip}
	return c.run(l, base)
}

// Unpack copies src to the packed bytes of l after the first skip. The result is the number of
// bytes of src used.
func (l *Layout) Unpack(base uintptr, src []byte, skip int) int {
	c := cursor{buf: src, skip: skip, unpack: true}
	return c.run(l, base)
}

func (c *cursor) run(l *Layout, base uintptr) int {
	if c.skip >= l.Size() {
		return 0
	}
	all := len(c.buf)
	c.walk(l, base)
	return all - len(c.buf)
}

// walk copies the bytes of l after skip, which is less than l's size.
func (c *cursor) walk(l *Layout, base uintptr) {
	turn := 0
	if c.skip > 0 {
		turn, c.skip = c.skip/l.each, c.skip%l.each
	}
	base += uintptr(l.off + turn*l.stride)
	if l.spans == nil && l.parts == nil {
		c.runs(base, l.count-turn, l.stride, l.each)
		return
	}
	for ; turn < l.count && len(c.buf) > 0; turn++ {
		if l.spans != nil {
			c.spans(l.spans, base)
		} else {
			c.parts(l.parts, base)
		}
		base += uintptr(l.stride)
	}
}

func (c *cursor) parts(parts []Layout, base uintptr) {
	if c.skip > 0 {
		k := sort.Search(len(parts), func(i int) bool { return parts[i].at > c.skip }) - 1
		c.skip -= parts[k].at
		parts = parts[k:]
	}
	for i := range parts {
		if len(c.buf) == 0 {
			return
		}
		c.walk(&parts[i], base)
	}
}

func (c *cursor) spans(spans []span, base uintptr) {
	if c.skip > 0 {
		k := sort.Search(len(spans), func(i int) bool { return spans[i].at > c.skip }) - 1
		s := spans[k]
		c.skip -= s.at
		c.copy(base+uintptr(s.off+c.skip), s.n-c.skip)
		c.skip = 0
		spans = spans[k+1:]
	}
	for _, s := range spans {
		if len(c.buf) < s.n {
			c.copy(base+uintptr(s.off), s.n)
			return
		}
		moveSpan(c.buf, base+uintptr(s.off), s.n, c.unpack)
		c.buf = c.buf[s.n:]
	}
}

// runs copies n runs of as many bytes.
func (c *cursor) runs(at uintptr, n, stride, bytes int) {
	if c.skip > 0 {
		c.copy(at+uintptr(c.skip), bytes-c.skip)
		c.skip = 0
		at, n = at+uintptr(stride), n-1
	}
	whole := min(n, len(c.buf)/bytes)
	switch bytes {
	case 4:
		moveWords[[4]byte](c.buf, at, whole, stride, c.unpack)
	case 8:
		moveWords[[8]byte](c.buf, at, whole, stride, c.unpack)
	case 16:
		moveWords[[16]byte](c.buf, at, whole, stride, c.unpack)
	default:
		moveRuns(c.buf, at, whole, stride, bytes, c.unpack)
	}
	c.buf = c.buf[whole*bytes:]
	if whole < n && len(c.buf) > 0 {
		c.copy(at+uintptr(whole*stride), bytes)
	}
}

// moveSpan copies n bytes. Words have a fast path, since copy is a function call.
func moveSpan(buf []byte, at uintptr, n int, unpack bool) {
	packed := unsafe.Pointer(unsafe.SliceData(buf))
	to, from := packed, pointer(at)
	if unpack {
		to, from = from, to
	}
	switch n {
	case 4:
		*(*[4]byte)(to) = *(*[4]byte)(from)
	case 8:
		*(*[8]byte)(to) = *(*[8]byte)(from)
	case 16:
		*(*[16]byte)(to) = *(*[16]byte)(from)
	default:
		copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(from), n))
	}
}

// copy copies a run of bytes, or as much as there is room for.
func (c *cursor) copy(at uintptr, n int) {
	n = min(n, len(c.buf))
	if memory := BytesAt(at, n); c.unpack {
		copy(memory, c.buf)
	} else {
		copy(c.buf, memory)
	}
	c.buf = c.buf[n:]
}

func moveRuns(buf []byte, at uintptr, n, stride, bytes int, unpack bool) {
	for range n {
		if memory := BytesAt(at, bytes); unpack {
			copy(memory, buf)
		} else {
			copy(buf, memory)
		}
		buf, at = buf[bytes:], at+uintptr(stride)
	}
}

// moveWords copies n words, which need not be aligned.
func moveWords[W [4]byte | [8]byte | [16]byte](buf []byte, at uintptr, n, stride int, unpack bool) {
	packed := unsafe.Slice((*W)(unsafe.Pointer(unsafe.SliceData(buf))), n)
	if unpack {
		for i := range packed {
			*(*W)(pointer(at)) = packed[i]
			at += uintptr(stride)
		}
		return
	}
	for i := range packed {
		packed[i] = *(*W)(pointer(at))
		at += uintptr(stride)
	}
}

// BytesAt returns the n bytes of memory at an address.
func BytesAt(at uintptr, n int) []byte { return unsafe.Slice((*byte)(pointer(at)), n) }

// pointer converts an address that may be C's.
func pointer(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }
