package cudaops

import (
	"fmt"
	"unsafe"

	"gompi/cudaops/internal/driver"
	"gompi/internal/mem"
)

// Alloc returns n zeroed elements of device memory, at a multiple of 256 bytes. The call takes some
// 100 microseconds and may wait for the device.
func (d *Device) Alloc(t Type, n int) (Buffer, error) {
	if err := checkSize(t, n); err != nil || n == 0 {
		return mem.Device(d, 0, t, 0), d.failed("alloc", err)
	}
	s, err := d.borrow()
	if err != nil {
		return Buffer{}, err
	}
	defer d.giveBack(s)
	addr, err := driver.Alloc(s.ctx, n*t.Size(), s.handle)
	if err != nil {
		return Buffer{}, d.failed(fmt.Sprintf("alloc of %d %v", n, t), err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.blocks[addr] = true
	return mem.Device(d, addr, t, n), nil
}

// checkSize refuses sizes that no device can hold, before they overflow.
func checkSize(t Type, n int) error {
	const most = 1 << 47 // bytes
	if !t.Valid() || n < 0 || n > most/t.Size() {
		return fmt.Errorf("%d elements of %v: want a valid type and 0 to 2^47 bytes", n, t)
	}
	return nil
}

// Free frees a Buffer of Alloc after the device has done all its work. Free panics for any other
// Buffer. An error of the driver is ignored, because every later call returns it, too.
func (d *Device) Free(b Buffer) {
	if b.Len() == 0 {
		return
	}
	d.mu.Lock()
	allocated := b.Space() == d && d.blocks[b.Addr()]
	if allocated {
		delete(d.blocks, b.Addr())
	}
	d.mu.Unlock()
	if !allocated {
		panic(fmt.Sprintf("cudaops: free of %#x in %s, which was not allocated on %s or is free already", b.Addr(),
			b.Space().Name(), d.name))
	}
	ctx, _ := d.context() // there is one, as there is memory
	driver.Free(ctx, b.Addr())
}

// Copy copies src to dst, of equal byte size, in device memory or between device and host memory.
// Host memory that is not pinned is copied through the driver's buffers.
func (d *Device) Copy(dst, src Buffer) error {
	s, err := d.borrow()
	if err != nil {
		return err
	}
	defer d.giveBack(s)
	return s.copy(dst, src, s.event)
}

// CopyAll copies srcs[i] to dsts[i] for all i, as Copy does, and waits once.
func (d *Device) CopyAll(dsts, srcs []Buffer) error {
	s, err := d.borrow()
	if err != nil {
		return err
	}
	defer d.giveBack(s)
	for i, dst := range dsts {
		if err := s.copy(dst, srcs[i], 0); err != nil {
			s.Sync() // earlier copies use their memory until then
			return err
		}
	}
	return s.Sync()
}

// AllocHost returns n zeroed elements of pinned host memory, which copies reach directly and
// Streams can use. The memory is not Go's: FreeHost frees it.
func (d *Device) AllocHost(t Type, n int) (Buffer, error) {
	err := checkSize(t, n)
	if err != nil {
		return Buffer{}, d.failed("alloc of pinned host memory", err)
	}
	if n == 0 {
		return mem.HostBytes(t, 0, nil), nil
	}
	ctx, err := d.context()
	if err != nil {
		return Buffer{}, d.failed("context", err)
	}
	p, err := driver.AllocHost(ctx, n*t.Size())
	if err != nil {
		return Buffer{}, d.failed(fmt.Sprintf("alloc of %d %v of pinned host memory", n, t), err)
	}
	return mem.HostBytes(t, n, p), nil
}

// FreeHost frees a Buffer of AllocHost, when the device has done its work.
func (d *Device) FreeHost(b Buffer) error {
	if b.Len() == 0 {
		return nil
	}
	const what = "free of pinned host memory"
	if !b.IsHost() {
		return d.failed(what, fmt.Errorf("it is in %s", b.Space().Name()))
	}
	ctx, err := d.context()
	if err == nil {
		err = driver.FreeHost(ctx, pointer(b))
	}
	return d.failed(fmt.Sprintf("%s of %d bytes at %#x", what, b.Size(), b.Addr()), err)
}

// pointer returns the address of host memory, nil for other memory.
func pointer(b Buffer) unsafe.Pointer {
	if !b.IsHost() {
		return nil
	}
	return unsafe.Pointer(unsafe.SliceData(b.HostSlice()))
}

// At returns n elements of type t at p, in device memory, also of other libraries, or in host
// memory. At asks the driver once, or never if no library in this process has opened the driver.
// The memory has to stay for as long as the Buffer is used.
func At(p unsafe.Pointer, t Type, n int) (Buffer, error) {
	if err := checkSize(t, n); err != nil {
		return Buffer{}, fmt.Errorf("memory at %p: %w", p, err)
	}
	host := func() Buffer { return mem.HostBytes(t, n, unsafe.Slice((*byte)(p), n*t.Size())) }
	if n == 0 || !driver.Loaded() {
		return host(), nil
	}
	devices, err := Devices()
	if err != nil {
		return host(), nil // another library opened a driver without devices
	}
	place, err := driver.Locate(uintptr(p))
	switch {
	case err != nil:
		return Buffer{}, fmt.Errorf("memory at %p: %w", p, err)
	case !place.Device:
		return host(), nil
	case place.Ordinal >= len(devices):
		return Buffer{}, fmt.Errorf("memory at %p is on device %d: want 0 to %d", p, place.Ordinal, len(devices)-1)
	}
	return mem.Device(devices[place.Ordinal], uintptr(p), t, n), nil
}
