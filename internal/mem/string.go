package mem

// CopyString copies src to dst, up to the shorter length, with the processor's string instruction
// (REP MOVSB), as copy does where there is none. The two do not overlap. There are processors on
// which it takes whole lines over without fetching them first, so that it is fast wherever the
// lines were. As after plain stores, later ones of this goroutine become visible after it.
func CopyString(dst, src []byte) {
	if n := min(len(dst), len(src)); n > 0 {
		copyString(&dst[0], &src[0], n)
	}
}
