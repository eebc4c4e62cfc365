//go:build linux && cgo

package main

import (
	"runtime"
	"sync"
	"unsafe"

	"gompi/internal/mem"
)

// An allocation is memory in C's hands. If a rank shares no memory, it is Go's and pinned.
type allocation struct {
	mem.Buffer
	pin *runtime.Pinner
}

// allocations are C's allocations of one kind, by address.
type allocations struct {
	mu  sync.Mutex
	all map[uintptr]allocation
}

// add stores b as C's and returns its address.
func (l *allocations) add(b mem.Buffer) unsafe.Pointer {
	x := allocation{b, new(runtime.Pinner)}
	p := unsafe.Pointer(unsafe.SliceData(b.HostSlice()))
	x.pin.Pin(p)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[uintptr]allocation{}
	}
	l.all[uintptr(p)] = x
	return p
}

func (l *allocations) find(p unsafe.Pointer) (b mem.Buffer, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x, ok := l.all[uintptr(p)]
	return x.Buffer, ok
}

func (l *allocations) remove(p unsafe.Pointer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[uintptr(p)].pin.Unpin()
	delete(l.all, uintptr(p))
}

// unpinAll drops the allocations that were freed with their communicator. An allocation that is
// dropped while pinned ends the process at the next garbage collection.
func (l *allocations) unpinAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.all {
		x.pin.Unpin()
	}
	l.all = nil
}

// alloc is gompi_alloc.
func (c *communicator) alloc(bytes uint64) (unsafe.Pointer, error) {
	if bytes == 0 || bytes > maxBytes {
		return nil, wrong("bytes is %d: want 1 to %d", bytes, uint64(maxBytes))
	}
	ctx, cancel := c.context()
	defer cancel()
	b, err := c.Alloc(ctx, mem.TypeOf[byte](), int(bytes))
	if err != nil {
		return nil, err
	}
	return c.allocations.add(b), nil
}

// dealloc is gompi_dealloc.
func (c *communicator) dealloc(p unsafe.Pointer) error {
	b, ok := c.allocations.find(p)
	if !ok {
		return wrong("memory is %p: want what gompi_alloc of this communicator has stored, once", p)
	}
	ctx, cancel := c.context()
	defer cancel()
	if err := c.Free(ctx, b); err != nil {
		return err
	}
	c.allocations.remove(p)
	return nil
}

// local holds the allocations of gompi_alloc_local.
var local allocations

// allocLocal is gompi_alloc_local.
func (c *communicator) allocLocal(bytes uint64) (unsafe.Pointer, error) {
	if bytes == 0 || bytes > maxBytes {
		return nil, wrong("bytes is %d: want 1 to %d", bytes, uint64(maxBytes))
	}
	b, err := c.AllocLocal(mem.TypeOf[byte](), int(bytes))
	if err != nil {
		return nil, err
	}
	return local.add(b), nil
}

// deallocLocal is gompi_dealloc_local.
func (c *communicator) deallocLocal(p unsafe.Pointer) error {
	b, ok := local.find(p)
	if !ok {
		return wrong("memory is %p: want what gompi_alloc_local has stored, once", p)
	}
	local.remove(p) // FreeLocal lets another allocation have its address
	return c.FreeLocal(b)
}
