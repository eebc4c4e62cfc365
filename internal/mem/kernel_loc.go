package mem

import "unsafe"

type located interface {
	int32 | int64 | float32 | float64
}

func minLoc[T located](dst, a, b unsafe.Pointer, n int) {
	d, x, y := operands[Loc[T]](dst, a, b, 0, n)
	for i := range d {
		v, w := x[i], y[i]
		if w.Value < v.Value || !(v.Value < w.Value) && tieGoesTo(w, v) {
			v = w
		}
		d[i] = v
	}
}

func maxLoc[T located](dst, a, b unsafe.Pointer, n int) {
	d, x, y := operands[Loc[T]](dst, a, b, 0, n)
	for i := range d {
		v, w := x[i], y[i]
		if w.Value > v.Value || !(v.Value > w.Value) && tieGoesTo(w, v) {
			v = w
		}
		d[i] = v
	}
}

// tieGoesTo reports whether w goes before v, where neither value is less than the other: a NaN
// before a number, then the lower index.
func tieGoesTo[T located](w, v Loc[T]) bool {
	wNaN, vNaN := w.Value != w.Value, v.Value != v.Value
	if wNaN != vNaN {
		return wNaN
	}
	return w.Index < v.Index
}
