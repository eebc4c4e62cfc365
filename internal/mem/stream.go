package mem

import "unsafe"

// Stream copies as many bytes as both slices have, which do not overlap, from src
// to dst, past the caches: for memory that another processor reads next, and whose
// lines may be in its cache. It costs more than copy where they are in ours. When
// it returns, the stores come before all later ones of this goroutine.
func Stream(dst, src []byte) {
	n := min(len(dst), len(src))
	head := min(int(-uintptr(unsafe.Pointer(unsafe.SliceData(dst)))%vectorUnit), n)
	body := (n - head) / vectorUnit * vectorUnit
	if body == 0 || !canStream {
		copy(dst, src)
		return
	}
	copy(dst[:head], src)
	stream(&dst[head], &src[head], body)
	copy(dst[head+body:n], src[head+body:])
}
