package layout

import "sort"

// A walker finds the runs of a part of a Layout's packed bytes.
type walker struct {
	skip, n int // packed bytes left before the part, and in it
	do      func(off, n, count, stride int) bool
}

// Part calls do for the runs of n packed bytes of l after the first skip, in their order, with
// each run's offset and its bytes. Part stops at the end of l, or when do returns false, and
// reports whether do returned true each time. Runs that touch are not merged across loops.
func (l *Layout) Part(skip, n int, do func(off, n int) bool) bool {
	return l.Loops(skip, n, func(off, n, count, stride int) bool {
		for ; count > 0; count-- {
			if !do(off, n) {
				return false
			}
			off += stride
		}
		return true
	})
}

// Loops is Part for loops of count runs of n bytes, stride bytes apart: a regular Layout has few.
func (l *Layout) Loops(skip, n int, do func(off, n, count, stride int) bool) bool {
	w := walker{skip, min(n, l.Size()-skip), do}
	return w.n <= 0 || w.walk(l, 0)
}

// walk is Part of a Layout in a loop that is at off, and reports whether there is more to do.
func (w *walker) walk(l *Layout, off int) bool {
	turn := w.skip / l.each
	w.skip %= l.each
	off += l.off + turn*l.stride
	if l.parts == nil && l.spans == nil {
		return w.loop(off, l.each, l.count-turn, l.stride)
	}
	for ; turn < l.count && w.n > 0; turn++ {
		if l.parts != nil && !w.parts(l.parts, off) || l.spans != nil && !w.spans(l.spans, off) {
			return false
		}
		off += l.stride
	}
	return true
}

func (w *walker) parts(parts []Layout, off int) bool {
	k := sort.Search(len(parts), func(i int) bool { return parts[i].at > w.skip }) - 1
	w.skip -= parts[k].at
	for ; k < len(parts) && w.n > 0; k++ {
		if !w.walk(&parts[k], off) {
			return false
		}
	}
	return true
}

func (w *walker) spans(spans []span, off int) bool {
	k := sort.Search(len(spans), func(i int) bool { return spans[i].at > w.skip }) - 1
	w.skip -= spans[k].at
	for ; k < len(spans) && w.n > 0; k++ {
		if !w.run(off+spans[k].off, spans[k].n) {
			return false
		}
	}
	return true
}

// loop is count runs of n bytes, of which the first and the last may be cut.
func (w *walker) loop(off, n, count, stride int) bool {
	if w.skip > 0 {
		if !w.run(off, n) {
			return false
		}
		off, count = off+stride, count-1
	}
	if whole := min(count, w.n/n); whole > 0 {
		w.n -= whole * n
		if !w.do(off, n, whole, stride) {
			return false
		}
		off, count = off+whole*stride, count-whole
	}
	return count == 0 || w.n == 0 || w.run(off, n)
}

func (w *walker) run(off, n int) bool {
	off, n = off+w.skip, min(n-w.skip, w.n)
	w.skip, w.n = 0, w.n-n
	return w.do(off, n, 1, 0)
}
