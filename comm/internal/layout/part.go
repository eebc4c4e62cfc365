package layout

import "sort"

// A walker finds the runs of a part of a Layout's packed bytes.
type walker struct {
	skip, n int // packed bytes before the part, and in it: what is left of both
	do      func(off, n int) bool
}

// Part calls do for the runs of n packed bytes of l behind the first skip, in their order: where
// each begins, and its bytes. It ends where l does, or when do returns false, and reports whether
// do has returned true each time. Runs that touch are not merged across loops.
func (l *Layout) Part(skip, n int, do func(off, n int) bool) bool {
	w := walker{skip, min(n, l.Size()-skip), do}
	return w.n <= 0 || w.walk(l, 0)
}

// walk is Part of a Layout in a loop that is at off, and reports whether there is more to do.
func (w *walker) walk(l *Layout, off int) bool {
	turn := w.skip / l.each
	w.skip %= l.each
	off += l.off + turn*l.stride
	for ; turn < l.count && w.n > 0; turn++ {
		more := true
		switch {
		case l.parts != nil:
			more = w.parts(l.parts, off)
		case l.spans != nil:
			more = w.spans(l.spans, off)
		default:
			more = w.run(off, l.each)
		}
		if !more {
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

func (w *walker) run(off, n int) bool {
	off, n = off+w.skip, min(n-w.skip, w.n)
	w.skip, w.n = 0, w.n-n
	return w.do(off, n)
}
