package mem

// CacheLine is the bytes that processors take from each other at a time.
const CacheLine = 64

// PerLine returns the number of b's elements in a CacheLine, at least one.
func PerLine(b Buffer) int { return max(CacheLine/max(b.ElemSize(), 1), 1) }

// Share returns elements [lo, hi), part i, from 0 on, of the parts that n elements are divided
// into. Every part that is not empty begins at a multiple of unit and has the same length, except
// that the last may be shorter. If n is too short for that many parts, the last of them are empty.
// If unit is the number of elements in a CacheLine and the memory is aligned, no two parts share a
// cache line.
func Share(n, parts, unit, i int) (lo, hi int) {
	each := ((n+parts-1)/parts + unit - 1) / unit * unit
	return min(i*each, n), min((i+1)*each, n)
}
