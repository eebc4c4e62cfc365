package mem

import (
	"fmt"
	"unsafe"
)

// A Buffer is a run of elements of one Type in one Space. It is a small value, passed by value;
// copying a Buffer copies no element. The zero Buffer is empty host memory. A Buffer keeps its host
// memory alive. It has four words: the compiler keeps no larger struct in registers, and a struct
// copied through memory right after its words were stored stalls the processor (np=2, allreduce of
// 8 bytes: 0.25 us, with six words 0.41 us).
type Buffer struct {
	kind *kind          // nil: host memory of NoType
	host unsafe.Pointer // first element, in host memory
	addr uintptr        // first element, in any other Space
	n    int
}

// A kind describes a Buffer's elements and memory.
type kind struct {
	typ   Type
	size  int   // of an element
	space Space // nil: host
	raw   *kind // bytes in the same Space

	scattered, readOnly bool // of the Space
}

var hostKinds = func() (kinds [numTypes]kind) {
	for t := range kinds {
		kinds[t] = kind{typ: Type(t), size: Type(t).Size()}
	}
	return kinds
}()

// Of returns the Buffer of s, in host memory, without copying.
func Of[T Scalar](s []T) Buffer {
	return Buffer{kind: &hostKinds[TypeOf[T]()], host: unsafe.Pointer(unsafe.SliceData(s)), n: len(s)}
}

// Bytes returns s as a Buffer of uint8.
func Bytes(s []byte) Buffer {
	return Buffer{kind: &hostKinds[U8], host: unsafe.Pointer(unsafe.SliceData(s)), n: len(s)}
}

// HostBytes returns the host memory b as a Buffer of n elements of type t, which is Valid.
// b must hold n elements and be aligned for t, else HostBytes panics.
func HostBytes(t Type, n int, b []byte) Buffer {
	if !t.Valid() || uint(n) > uint(len(b)) || n*t.Size() > len(b) {
		panic(fmt.Sprintf("mem: %d bytes cannot hold %d elements of %v", len(b), n, t))
	}
	return Buffer{kind: &hostKinds[t], host: unsafe.Pointer(unsafe.SliceData(b)), n: n}
}

// HostLike returns the host memory b as a Buffer of n elements like the elements of another Buffer.
// b must hold n such elements and be aligned for them, else HostLike panics.
func HostLike(like Buffer, n int, b []byte) Buffer {
	k := like.kind
	if k == nil || uint(n) > uint(len(b)) || n*k.size > len(b) {
		panic(fmt.Sprintf("mem: %d bytes cannot hold %d elements of %v", len(b), n, like.Type()))
	}
	if k.space != nil {
		k = &hostKinds[k.typ]
	}
	return Buffer{kind: k, host: unsafe.Pointer(unsafe.SliceData(b)), n: n}
}

// Device returns a Buffer of n elements of type t at addr in space s, which is not Host.
func Device(s Space, addr uintptr, t Type, n int) Buffer {
	kinds := &[2]kind{{typ: t, size: t.Size(), space: s}, {typ: U8, size: 1, space: s}}
	x, scattered := s.(Scattered)
	for i := range kinds {
		k := &kinds[i]
		k.raw, k.scattered, k.readOnly = &kinds[1], scattered, scattered && x.ReadOnly()
	}
	return Buffer{kind: &kinds[0], addr: addr, n: n}
}

// Slice returns b's memory as a []T; b must be host memory of T's Type.
func Slice[T Scalar](b Buffer) []T {
	if t := TypeOf[T](); !b.IsHost() || b.Type() != t && b.n > 0 {
		panic(fmt.Sprintf("mem: a buffer of %v in %s is not a host slice of %v", b.Type(), b.Space().Name(), t))
	}
	return unsafe.Slice((*T)(b.host), b.n)
}

// Len returns the number of elements.
func (b Buffer) Len() int { return b.n }

// Type returns the element type.
func (b Buffer) Type() Type {
	if b.kind == nil {
		return NoType
	}
	return b.kind.typ
}

// ElemSize returns the bytes of one element.
func (b Buffer) ElemSize() int {
	if b.kind == nil {
		return 0
	}
	return b.kind.size
}

// Size returns the number of bytes.
func (b Buffer) Size() int {
	if b.kind == nil {
		return 0
	}
	return b.n * b.kind.size
}

// IsHost reports whether the processor can load and store b's elements.
func (b Buffer) IsHost() bool { return b.kind == nil || b.kind.space == nil }

// Space returns the Space b lives in, Host for host memory.
func (b Buffer) Space() Space {
	if b.IsHost() {
		return Host
	}
	return b.kind.space
}

// Addr returns the address of the first element in b's Space, for kernels and drivers; the address
// does not keep host memory alive.
func (b Buffer) Addr() uintptr {
	return uintptr(b.host) + b.addr // one of the two is 0
}

// Slice returns elements [i, j) of b.
func (b Buffer) Slice(i, j int) Buffer {
	if i < 0 || j < i || j > b.n {
		panic(fmt.Sprintf("mem: slice [%d:%d) of a buffer of %d elements", i, j, b.n))
	}
	b.n = j - i
	switch {
	case b.kind == nil:
	case b.kind.space != nil:
		b.addr += uintptr(i * b.kind.size)
	case b.n == 0:
		b.host = nil // never point past the end of an allocation
	default:
		b.host = unsafe.Add(b.host, i*b.kind.size)
	}
	return b
}

// Raw returns b's memory as a Buffer of uint8, the form that a transport carries.
func (b Buffer) Raw() Buffer {
	b.n = b.Size()
	if b.IsHost() {
		b.kind = &hostKinds[U8]
	} else {
		b.kind = b.kind.raw
	}
	return b
}

// As returns b's memory as elements of like's Type, as many as b has room for. Both Buffers must be
// in one Space, else As panics, and b must be aligned for the Type.
func (b Buffer) As(like Buffer) Buffer {
	if b.Space() != like.Space() {
		panic(fmt.Sprintf("mem: memory of %s as memory of %s", b.Space().Name(), like.Space().Name()))
	}
	size := b.Size()
	if b.kind, b.n = like.kind, 0; like.kind != nil && like.kind.size > 0 {
		b.n = size / like.kind.size
	}
	return b
}

// HostSlice returns the bytes of host memory b; it panics for other Spaces. HostSlice is small
// enough to be inlined.
func (b Buffer) HostSlice() []byte {
	if !b.IsHost() {
		panic("mem: HostSlice of memory that is not the host's")
	}
	return unsafe.Slice((*byte)(b.host), b.Size())
}

// Same reports whether a and b are the same memory with elements of one kind.
func Same(a, b Buffer) bool {
	return a.n == b.n && a.host == b.host && a.addr == b.addr &&
		(a.kind == b.kind || Alike(a, b) && a.Space() == b.Space())
}

// Alike reports whether the elements of a and b are of one Type and size.
func Alike(a, b Buffer) bool {
	return a.kind == b.kind || a.Type() == b.Type() && a.ElemSize() == b.ElemSize()
}

// Overlap reports whether a and b share any byte.
func Overlap(a, b Buffer) bool {
	if a.n == 0 || b.n == 0 || a.kind != b.kind && a.kind.space != b.kind.space {
		return false
	}
	x, y := a.Addr(), b.Addr()
	return x < y+uintptr(b.n*b.kind.size) && y < x+uintptr(a.n*a.kind.size)
}
