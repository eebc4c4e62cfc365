package mem

import (
	"fmt"
	"math"
	"math/bits"
	"sync"
	"unsafe"
)

// Elements that no Type describes: of any size, combined by functions of the user. Collectives
// divide a Buffer only between elements.

// MaxElement is the size of the largest element.
const MaxElement = math.MaxInt32

// opaqueKinds are the kinds in host memory, one per size.
var opaqueKinds struct {
	sync.RWMutex
	of map[int]*kind
}

// HostElements returns the host memory b as a Buffer of n elements of size bytes, of the Type
// Opaque. b must hold the elements, and size must be 1 to MaxElement, else HostElements panics. The
// elements need no alignment: arguments of functions are aligned like the caller's memory, or for
// any Type, if the size of an element is a multiple of the Type's alignment.
func HostElements(size, n int, b []byte) Buffer {
	if size < 1 || size > MaxElement || uint(n) > uint(len(b)/size) {
		panic(fmt.Sprintf("mem: %d bytes cannot hold %d elements of %d bytes", len(b), n, size))
	}
	return Buffer{kind: opaqueKind(size), host: unsafe.Pointer(unsafe.SliceData(b)), n: n}
}

func opaqueKind(size int) *kind {
	kinds := &opaqueKinds
	kinds.RLock()
	k := kinds.of[size]
	kinds.RUnlock()
	if k != nil {
		return k
	}
	kinds.Lock()
	defer kinds.Unlock()
	if k = kinds.of[size]; k == nil {
		if kinds.of == nil {
			kinds.of = map[int]*kind{}
		}
		k = &kind{typ: Opaque, size: size}
		kinds.of[size] = k
	}
	return k
}

// PackElements encodes the number and the size of elements in one word. Both fit, since no memory
// has more than 2^48 bytes.
func PackElements(n, size int) uint64 {
	k := bits.Len(uint(size))
	return uint64(k)<<sizeBitsAt | uint64(n)<<k | uint64(size)
}

// sizeBitsAt is the position in the word of the bit length of the size. The size has the bits from
// 0 on, and the number has the bits in between.
const sizeBitsAt = 58

// UnpackElements decodes a word from PackElements. It accepts any word.
func UnpackElements(word uint64) (n, size int) {
	k := word >> sizeBitsAt
	word &= 1<<sizeBitsAt - 1
	return int(word >> k), int(word & (1<<k - 1))
}
