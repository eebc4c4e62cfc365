//go:build linux && cgo

package main

import (
	"runtime"
	"unsafe"

	"gompi/comm"
)

// A loan is memory that C has. It is Go's where a rank shares none.
type loan struct {
	comm.Buffer
	pin *runtime.Pinner
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
	x := loan{b, new(runtime.Pinner)}
	p := unsafe.Pointer(unsafe.SliceData(b.HostSlice()))
	x.pin.Pin(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loans == nil {
		c.loans = map[uintptr]loan{}
	}
	c.loans[uintptr(p)] = x
	return p, nil
}

// takeBack is gompi_dealloc.
func (c *communicator) takeBack(p unsafe.Pointer) error {
	c.mu.Lock()
	x, ok := c.loans[uintptr(p)]
	c.mu.Unlock()
	if !ok {
		return wrong("memory is %p: want what gompi_alloc of this communicator has stored, once", p)
	}
	ctx, cancel := c.context()
	defer cancel()
	if err := c.Free(ctx, x.Buffer); err != nil {
		return err
	}
	c.mu.Lock()
	delete(c.loans, uintptr(p))
	c.mu.Unlock()
	x.pin.Unpin()
	return nil
}
