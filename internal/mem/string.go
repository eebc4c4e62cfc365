package mem

// CopyString copies src to dst, up to the shorter length, with the processor's string instruction
// (REP MOVSB), or as copy does on a processor without such an instruction. The two do not overlap.
// On some processors the instruction takes whole lines over without fetching them first, and is
// fast wherever the lines were. As after plain stores, later stores of this goroutine become
// visible after the copy.
func CopyString(dst, src []byte) {
	if n := min(len(dst), len(src)); n > 0 {
		copyString(&dst[0], &src[0], n)
	}
}
