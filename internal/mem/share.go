package mem

// CacheLine is the bytes that processors take from each other at a time.
const CacheLine = 64

// PerLine returns the number of b's elements in a CacheLine, at least one.
func PerLine(b Buffer) int { return max(CacheLine/max(b.ElemSize(), 1), 1) }

// Share returns elements [lo, hi) of n that are part i of those that n is divided into,
// from 0 on. Every part that is not empty begins at a multiple of unit and has the same
// length, but the last may be shorter. Where n is short for that many parts, the last of
// them are empty.
//
// If unit is the number of elements in a CacheLine and the memory is aligned, no two parts share a
// cache line.
func Share(n, parts, unit, i int) (lo, hi int) {
	each := ((n+parts-1)/parts + unit - 1) / unit * unit
	return min(i*each, n), min((i+1)*each, n)
}
