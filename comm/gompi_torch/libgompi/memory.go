//go:build linux && cgo

package main

import (
	"runtime"
	"sync"
	"unsafe"

	"gompi/internal/core"
	"gompi/internal/mem"
)

// An allocation is memory in C's hands. If a rank shares no memory, it is Go's and pinned.
type allocation struct {
	mem.Buffer
	pin *runtime.Pinner
}

// local holds the allocations of gompi_alloc_local, by address.
var local sync.Map // of unsafe.Pointer to allocation

// allocLocal is gompi_alloc_local.
func (c *communicator) allocLocal(bytes int) (unsafe.Pointer, error) {
	b, err := c.AllocLocal(mem.TypeOf[byte](), bytes)
	if err != nil {
		return nil, err
	}
	x := allocation{b, new(runtime.Pinner)}
	p := unsafe.Pointer(unsafe.SliceData(b.HostSlice()))
	x.pin.Pin(p)
	local.Store(p, x)
	return p, nil
}

// deallocLocal is gompi_dealloc_local.
func (c *communicator) deallocLocal(p unsafe.Pointer) error {
	x, ok := local.LoadAndDelete(p) // FreeLocal lets another allocation have its address
	if !ok {
		return core.BadArgument("memory at %p: want memory of gompi_alloc_local, once", p)
	}
	x.(allocation).pin.Unpin()
	return c.FreeLocal(x.(allocation).Buffer)
}
