package memtest

import (
	"fmt"
	"sync"

	"gompi/internal/mem"
)

// A Device is a Space for tests whose memory can be reached through its methods alone: the
// addresses of its Buffers mean nothing to the processor, and using them after Free is an error.
// Make a Device with NewDevice.
type Device struct {
	name string

	mu     sync.Mutex
	blocks map[uintptr]mem.Buffer // host memory by the upper half of its address
	last   uintptr                // key of the newest block

	engine sync.Mutex // copies are made one after the other
}

// blockBits are the bits of an address that count within its block.
const blockBits = 32

// NewDevice returns a Device without any memory in use.
func NewDevice(name string) *Device {
	return &Device{name: name, blocks: map[uintptr]mem.Buffer{}}
}

// Name returns the name given to NewDevice.
func (d *Device) Name() string { return d.name }

// InUse returns the number of allocations that have not been freed.
func (d *Device) InUse() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.blocks)
}

// Alloc returns zeroed memory at an address that no other allocation ever had.
func (d *Device) Alloc(t mem.Type, n int) (mem.Buffer, error) {
	b, err := mem.Host.Alloc(t, n)
	if err != nil {
		return mem.Buffer{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	d.blocks[d.last] = b
	return mem.Device(d, d.last<<blockBits, t, n), nil
}

// Free makes b's memory unusable.
func (d *Device) Free(b mem.Buffer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.blocks, b.Addr()>>blockBits)
}

// Copy copies between the Device and host memory, or inside the Device.
func (d *Device) Copy(dst, src mem.Buffer) error {
	bs, err := d.host(dst, src)
	if err != nil {
		return err
	}
	d.engine.Lock()
	defer d.engine.Unlock()
	return mem.Host.Copy(bs[0], bs[1])
}

// host returns the host memory behind bs. Host memory stands for itself.
func (d *Device) host(bs ...mem.Buffer) ([]mem.Buffer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	behind := make([]mem.Buffer, len(bs))
	for i, b := range bs {
		block, ok := d.blocks[b.Addr()>>blockBits]
		offset := int(b.Addr() & (1<<blockBits - 1))
		switch {
		case b.IsHost():
			behind[i] = b
		case b.Space() != d:
			return nil, fmt.Errorf("buffer in %s: want one in %s or in host memory", b.Space().Name(), d.name)
		case !ok || offset+b.Size() > block.Size():
			return nil, fmt.Errorf("%d bytes at %#x are not allocated in %s", b.Size(), b.Addr(), d.name)
		default:
			behind[i] = mem.HostBytes(b.Type(), b.Len(), block.HostSlice()[offset:])
		}
	}
	return behind, nil
}
