package mem

// Copies are the ways to copy src to dst, memory of equal length that does not overlap, if another
// processor reads dst next. Which is fastest depends on the processors, and on whether the two
// share a cache. The first is plain.
var Copies = [...]func(dst, src []byte){
	func(dst, src []byte) { copy(dst, src) }, CopyNonTemporal, CopyString,
}

// NonTemporal is the index of CopyNonTemporal in Copies.
const NonTemporal = 1

// CopyString copies src to dst, up to the shorter length, with the processor's string instruction
// (REP MOVSB), or as copy does on a processor without one. The two do not overlap. On some
// processors the instruction takes whole lines over without fetching them first, fast wherever they
// were. As after plain stores, later stores of this goroutine become visible after the copy.
func CopyString(dst, src []byte) {
	if n := min(len(dst), len(src)); n > 0 {
		copyString(&dst[0], &src[0], n)
	}
}
