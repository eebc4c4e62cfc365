package mem

import (
	"fmt"
	"unsafe"
)

// A Buffer is a run of elements of one Type in one Space. It is a small value,
// passed by value; copying it copies no element. The zero Buffer is empty host
// memory. A Buffer keeps the host memory it names alive.
type Buffer struct {
	space Space          // nil: host
	host  unsafe.Pointer // first element, in host memory
	addr  uintptr        // first element, in any other Space
	n     int
	typ   Type
}

// Of returns the Buffer of s, in host memory, without copying.
func Of[T Scalar](s []T) Buffer {
	return Buffer{host: unsafe.Pointer(unsafe.SliceData(s)), n: len(s), typ: TypeOf[T]()}
}

// Bytes returns s as a Buffer of uint8.
func Bytes(s []byte) Buffer {
	return Buffer{host: unsafe.Pointer(unsafe.SliceData(s)), n: len(s), typ: U8}
}

// HostBytes returns the host memory b as a Buffer of n elements of type t.
// b must hold n elements and be aligned for t, else HostBytes panics.
func HostBytes(t Type, n int, b []byte) Buffer {
	if !t.Valid() || n < 0 || n > len(b)/t.Size() {
		panic(fmt.Sprintf("mem: %d bytes cannot hold %d elements of %v", len(b), n, t))
	}
	return Buffer{host: unsafe.Pointer(unsafe.SliceData(b)), n: n, typ: t}
}

// Device returns a Buffer of n elements of type t at addr in space s, which is
// not Host.
func Device(s Space, addr uintptr, t Type, n int) Buffer {
	return Buffer{space: s, addr: addr, n: n, typ: t}
}

// Slice returns b's memory as a []T; b must be host memory of T's Type.
func Slice[T Scalar](b Buffer) []T {
	if t := TypeOf[T](); b.space != nil || b.typ != t && b.n > 0 {
		panic(fmt.Sprintf("mem: a buffer of %v in %s is not a host slice of %v", b.typ, b.Space().Name(), t))
	}
	return unsafe.Slice((*T)(b.host), b.n)
}

// Len returns the number of elements.
func (b Buffer) Len() int { return b.n }

// Type returns the element type.
func (b Buffer) Type() Type { return b.typ }

// Size returns the number of bytes.
func (b Buffer) Size() int { return b.n * b.typ.Size() }

// IsHost reports whether the processor can load and store b's elements.
func (b Buffer) IsHost() bool { return b.space == nil }

// Space returns the Space b lives in, Host for host memory.
func (b Buffer) Space() Space {
	if b.space == nil {
		return Host
	}
	return b.space
}

// Addr returns the address of the first element in b's Space, for kernels and
// drivers; it does not keep host memory alive.
func (b Buffer) Addr() uintptr {
	if b.space == nil {
		return uintptr(b.host)
	}
	return b.addr
}

// Slice returns elements [i, j) of b.
func (b Buffer) Slice(i, j int) Buffer {
	if i < 0 || j < i || j > b.n {
		panic(fmt.Sprintf("mem: slice [%d:%d) of a buffer of %d elements", i, j, b.n))
	}
	off := i * b.typ.Size()
	c := b
	c.n = j - i
	if b.space == nil {
		if c.n == 0 {
			c.host = nil // never point past the end of an allocation
		} else {
			c.host = unsafe.Add(b.host, off)
		}
	} else {
		c.addr = b.addr + uintptr(off)
	}
	return c
}

// Raw returns b's memory as a Buffer of uint8: what a transport carries.
func (b Buffer) Raw() Buffer {
	b.n, b.typ = b.Size(), U8
	return b
}

// HostSlice returns the bytes of host memory b; it panics for other Spaces.
func (b Buffer) HostSlice() []byte {
	if b.space != nil {
		b.notHost()
	}
	return unsafe.Slice((*byte)(b.host), b.Size())
}

// notHost is apart so that HostSlice is small enough to be inlined.
func (b Buffer) notHost() { panic("mem: HostSlice of a buffer in " + b.space.Name()) }

// Same reports whether a and b are the same memory with the same Type.
func Same(a, b Buffer) bool {
	return a.n == b.n && a.typ == b.typ && a.space == b.space && a.Addr() == b.Addr()
}

// Overlap reports whether a and b share any byte.
func Overlap(a, b Buffer) bool {
	if a.space != b.space || a.n == 0 || b.n == 0 {
		return false
	}
	x, y := a.Addr(), b.Addr()
	return x < y+uintptr(b.Size()) && y < x+uintptr(a.Size())
}
