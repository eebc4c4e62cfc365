package mem

import (
	"fmt"
	"math"
	"math/bits"
	"sync"
	"unsafe"
)

// Elements that no Type describes: of any size, combined by functions of the user's. Collectives
// divide a Buffer between elements only.

// MaxElement is the size of the largest element.
const MaxElement = math.MaxInt32

// opaqueKinds are those in host memory, by size. There is one of each size, as of each Type.
var opaqueKinds struct {
	sync.RWMutex
	of map[int]*kind
}

// HostElements returns the host memory b as a Buffer of n elements of size bytes, of the Type
// Opaque. b must hold them, and size be 1 to MaxElement, else HostElements panics. They need no
// alignment: what functions get is aligned as the caller's memory is, or for any Type, as far as
// the size of an element is a multiple of that.
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

// PackElements encodes how many elements of which size there are in one word. They fit, since no
// memory has more than 2^48 bytes.
func PackElements(n, size int) uint64 {
	k := bits.Len(uint(size))
	return uint64(k)<<sizeBitsAt | uint64(n)<<k | uint64(size)
}

// sizeBitsAt is where in the word the number of bits of the size begins. The size has the bits from
// 0 on, and what is between has the number.
const sizeBitsAt = 58

// UnpackElements decodes what PackElements has encoded. It takes any word.
func UnpackElements(word uint64) (n, size int) {
	k := word >> sizeBitsAt
	word &= 1<<sizeBitsAt - 1
	return int(word >> k), int(word & (1<<k - 1))
}
