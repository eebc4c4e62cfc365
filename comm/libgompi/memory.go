//go:build linux && cgo

package main

import (
	"runtime"
	"sync"
	"unsafe"

	"gompi/comm"
)

// A loan is memory that C has. It is Go's where a rank shares none.
type loan struct {
	comm.Buffer
	pin *runtime.Pinner
}

// loans are what C has of one kind, by address.
type loans struct {
	mu  sync.Mutex
	all map[uintptr]loan
}

// add notes that C has b, and returns its address.
func (l *loans) add(b comm.Buffer) unsafe.Pointer {
	x := loan{b, new(runtime.Pinner)}
	p := unsafe.Pointer(unsafe.SliceData(b.HostSlice()))
	x.pin.Pin(p)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[uintptr]loan{}
	}
	l.all[uintptr(p)] = x
	return p
}

func (l *loans) find(p unsafe.Pointer) (b comm.Buffer, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x, ok := l.all[uintptr(p)]
	return x.Buffer, ok
}

func (l *loans) remove(p unsafe.Pointer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[uintptr(p)].pin.Unpin()
	delete(l.all, uintptr(p))
}

// unpinAll forgets what is left when the memory was given back with its communicator. A loan that
// is dropped while it is pinned ends the process at the next garbage collection.
func (l *loans) unpinAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.all {
		x.pin.Unpin()
	}
	l.all = nil
}

// lend is gompi_alloc.
func (c *communicator) lend(bytes uint64) (unsafe.Pointer, error) {
	if bytes == 0 || bytes > maxBytes {
		return nil, wrong("bytes is %d: want 1 to %d", bytes, uint64(maxBytes))
	}
	ctx, cancel := c.context()
	defer cancel()
	b, err := c.Alloc(ctx, comm.TypeOf[byte](), int(bytes))
	if err != nil {
		return nil, err
	}
	return c.loans.add(b), nil
}

// takeBack is gompi_dealloc.
func (c *communicator) takeBack(p unsafe.Pointer) error {
	b, ok := c.loans.find(p)
	if !ok {
		return wrong("memory is %p: want what gompi_alloc of this communicator has stored, once", p)
	}
	ctx, cancel := c.context()
	defer cancel()
	if err := c.Free(ctx, b); err != nil {
		return err
	}
	c.loans.remove(p)
	return nil
}

// local is what gompi_alloc_local has stored.
var local loans

// lendLocal is gompi_alloc_local.
func (c *communicator) lendLocal(bytes uint64) (unsafe.Pointer, error) {
	if bytes == 0 || bytes > maxBytes {
		return nil, wrong("bytes is %d: want 1 to %d", bytes, uint64(maxBytes))
	}
	b, err := c.AllocLocal(comm.TypeOf[byte](), int(bytes))
	if err != nil {
		return nil, err
	}
	return local.add(b), nil
}

// takeLocalBack is gompi_dealloc_local.
func (c *communicator) takeLocalBack(p unsafe.Pointer) error {
	b, ok := local.find(p)
	if !ok {
		return wrong("memory is %p: want what gompi_alloc_local has stored, once", p)
	}
	local.remove(p) // its place may be another's as soon as it is free
	return c.FreeLocal(b)
}
