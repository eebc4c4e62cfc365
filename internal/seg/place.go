package seg

import "unsafe"

// A Place encodes a rank's buffer for other ranks of the host: 1 + the offset in the rank's heap,
// or the address, if only the rank itself maps the buffer, or one of the constants.
type Place uint64

const (
	NotShared Place = 0         // others cannot reach the buffer
	Nowhere   Place = ^Place(0) // the buffer is empty, or no other rank needs it

	// private flags an address. Addresses of programs are shorter.
	private Place = 1 << 62
)

// Locate returns the place of b in its owner's heap.
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

// PrivatePlace returns the place of b, which is not empty, in memory that only its owner maps.
func PrivatePlace(b []byte) Place {
	return private | Place(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

// Private reports whether p is in memory that only its owner maps.
func (p Place) Private() bool { return p&private != 0 && p != Nowhere }

// Address returns the address of a Private place.
func (p Place) Address() uintptr { return uintptr(p &^ private) }

// At returns n bytes, from off on, of the buffer that lies at p of a rank's heap.
func (p Place) At(heap []byte, off, n int) []byte { return heap[p-1:][off : off+n] }
