package cudaops

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"

	"gompi/cudaops/internal/driver"
)

// process tells this process from all others.
var process = sync.OnceValue(func() (id [16]byte) {
	rand.Read(id[:])
	return id
})

// handleSize is the size of what Export returns: the driver's handle of the
// allocation, the process, and where in the allocation and in the process the
// Buffer is. Its numbers are little-endian.
const handleSize = driver.IPCSize + 16 + 4*8

// Export returns a handle of b for Import in other processes of the host, which
// see the same memory. It works for memory of Alloc (other libraries' may be of
// a kind that the driver does not export) and has to stay until all have freed
// what they imported.
func (d *Device) Export(b Buffer) ([]byte, error) {
	if b.Space() != d || b.Len() == 0 {
		return nil, fmt.Errorf("export of %d bytes in %s: want memory of %s", b.Size(), b.Space().Name(), d.name)
	}
	ctx, err := d.context()
	if err != nil {
		return nil, d.failed("export", err)
	}
	base, size, err := driver.Allocation(ctx, b.Addr())
	if err != nil {
		return nil, d.failed("export", err)
	}
	offset := b.Addr() - base
	if int(offset)+b.Size() > size {
		return nil, d.failed("export", fmt.Errorf("%d bytes from %d on leave their allocation of %d", b.Size(), offset, size))
	}
	var ipc [driver.IPCSize]byte
	if err := driver.Export(ctx, base, &ipc); err != nil {
		return nil, d.failed("export", err)
	}
	id := process()
	h := append(append(make([]byte, 0, handleSize), ipc[:]...), id[:]...)
	for _, v := range []uint64{uint64(offset), uint64(b.Size()), uint64(b.Addr()), uint64(d.ordinal)} {
		h = binary.LittleEndian.AppendUint64(h, v)
	}
	return h, nil
}

// Import returns n elements of type t of the memory that another process, or this
// one, exported. Kernels and copies of d use it as d's own; Free unmaps it. A
// first Import of an allocation takes some 100 microseconds.
func (d *Device) Import(handle []byte, t Type, n int) (Buffer, error) {
	if len(handle) != handleSize {
		return Buffer{}, d.failed("import", fmt.Errorf("a handle of %d bytes: want %d", len(handle), handleSize))
	}
	ipc, rest := [driver.IPCSize]byte(handle), handle[driver.IPCSize:]
	from, numbers := [16]byte(rest), rest[16:]
	offset, size := binary.LittleEndian.Uint64(numbers), binary.LittleEndian.Uint64(numbers[8:])
	addr, ordinal := binary.LittleEndian.Uint64(numbers[16:]), binary.LittleEndian.Uint64(numbers[24:])
	if err := checkSize(t, n); err != nil || n == 0 || uint64(n*t.Size()) > size {
		return Buffer{}, d.failed("import", fmt.Errorf("%d elements of %v of memory of %d bytes", n, t, size))
	}
	ctx, err := d.context()
	if err != nil {
		return Buffer{}, d.failed("import", err)
	}
	if from == process() { // the driver imports nothing of the process itself
		if err := d.reach(ctx, int(ordinal)); err != nil {
			return Buffer{}, d.failed(fmt.Sprintf("import from cuda:%d of this process", ordinal), err)
		}
		return d.keep(uintptr(addr), block{kind: alias}, t, n), nil
	}
	base, err := driver.Import(ctx, &ipc)
	if err != nil {
		return Buffer{}, d.failed("import", err)
	}
	return d.keep(base+uintptr(offset), block{base: base, kind: imported}, t, n), nil
}

// reach lets d's kernels use the memory of a device of this process.
func (d *Device) reach(ctx driver.Context, ordinal int) error {
	if ordinal == d.ordinal {
		return nil
	}
	peer, err := Open(ordinal)
	if err != nil {
		return err
	}
	theirs, err := peer.context()
	if err != nil {
		return err
	}
	return driver.Reach(ctx, theirs)
}
