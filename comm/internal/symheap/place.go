package symheap

import "unsafe"

// A Place tells other ranks of the host where a rank's buffer lies in its heap: 1 + the offset, or
// one of the constants.
type Place uint64

const (
	NotShared Place = 0         // it is not in the heap: others cannot reach it
	Nowhere   Place = ^Place(0) // it is empty, or no other rank needs it
)

// Locate returns where b lies in its owner's heap.
func Locate(heap, b []byte) Place {
	if len(b) == 0 {
		return Nowhere
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b))) - uintptr(unsafe.Pointer(unsafe.SliceData(heap)))
	if at >= uintptr(len(heap)) || uintptr(len(heap))-at < uintptr(len(b)) {
		return NotShared
	}
	return Place(at) + 1
}

// At returns n bytes, from off on, of the buffer that lies at p of a rank's heap.
func (p Place) At(heap []byte, off, n int) []byte { return heap[p-1:][off : off+n] }
