package layout

import (
	"fmt"
	"runtime"
	"unsafe"

	"gompi/internal/mem"
)

// Memory is host memory that a Layout describes. As a mem.Space, its addresses are numbers of
// packed bytes: so Memory supports all operations on a device's memory.
type Memory struct {
	Layout
	base     uintptr
	keep     unsafe.Pointer // keeps Go's memory alive
	readOnly bool
}

var _ mem.Scattered = (*Memory)(nil)

// Lay returns the n elements of type t that have the Layout l at base. keep is base if that is Go's
// memory. readOnly states that elements share bytes.
func Lay(base uintptr, keep unsafe.Pointer, l Layout, t mem.Type, n int, readOnly bool) mem.Buffer {
	return mem.Device(&Memory{l, base, keep, readOnly}, 0, t, n)
}

// Name implements mem.Space.
func (m *Memory) Name() string { return "laid-out host memory" }

// Alloc implements mem.Space: the result is contiguous host memory.
func (m *Memory) Alloc(t mem.Type, n int) (mem.Buffer, error) { return mem.Host.Alloc(t, n) }

// Free implements mem.Space.
func (m *Memory) Free(mem.Buffer) {}

// ReadOnly implements mem.Scattered.
func (m *Memory) ReadOnly() bool { return m.readOnly }

// bounce is the bytes that pass through host memory at a time if neither side is contiguous.
const bounce = 64 << 10

// Copy implements mem.Space. It packs or unpacks. If neither side is contiguous, it does both, in
// chunks.
func (m *Memory) Copy(dst, src mem.Buffer) error {
	switch {
	case dst.Size() != src.Size():
		return fmt.Errorf("copy of %d bytes to a buffer of %d bytes", src.Size(), dst.Size())
	case dst.IsHost():
		m.Pack(dst.HostSlice(), m.base, int(src.Addr()))
	case src.IsHost():
		m.Unpack(m.base, src.HostSlice(), int(dst.Addr()))
	default:
		return copyChunks(dst.Raw(), src.Raw())
	}
	runtime.KeepAlive(m)
	return nil
}

func copyChunks(dst, src mem.Buffer) error {
	room := mem.Bytes(make([]byte, min(bounce, src.Len())))
	for lo := 0; lo < src.Len(); lo += bounce {
		hi := min(lo+bounce, src.Len())
		here := room.Slice(0, hi-lo)
		if err := mem.Copy(here, src.Slice(lo, hi)); err != nil {
			return err
		}
		if err := mem.Copy(dst.Slice(lo, hi), here); err != nil {
			return err
		}
	}
	return nil
}
