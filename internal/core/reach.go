package core

import (
	"unsafe"

	"gompi/internal/core/layout"
	"gompi/internal/core/message"
	"gompi/internal/mem"
	"gompi/internal/seg"
	"gompi/transport/shm"
)

// Access to memory of another rank without its participation: mapped, by the kernel, or by network
// devices.

// Shares reports whether this rank and another share memory.
func (c *Comm) Shares(rank int) bool { return c.onHostOf(c.memory, rank) }

// Maps reports whether this rank and another map memory of AllocMapped, even if their messages go
// by TCP.
func (c *Comm) Maps(rank int) bool { return c.onHostOf(c.mapping(), rank) }

// onHostOf reports whether a rank maps m, which may be nil.
func (c *Comm) onHostOf(m *hostMemory, rank int) bool {
	if m == nil {
		return false
	}
	_, ok := m.info.Segment.LocalRank(c.ch.World(rank))
	return ok
}

// AllocMapped returns n bytes, mapped by the ranks for which Maps is true. FreeLocal takes them
// back. If Maps is false for all other ranks, the memory may be any.
func (c *Comm) AllocMapped(n int) ([]byte, error) {
	m := c.mapping()
	if m == nil || n == 0 {
		b, err := c.AllocLocal(mem.U8, n)
		return b.HostSlice(), err
	}
	x, err := m.allocate(c.e, mem.U8, n)
	if err != nil {
		return nil, c.fault("alloc_local", -1, err)
	}
	c.local.add(x)
	return x.b.HostSlice(), nil
}

// Locate returns the place of n bytes of this rank, for ranks that share memory with this rank; 0
// if the bytes are not in shared memory.
func (c *Comm) Locate(at uintptr, n int) uint64 {
	m := c.mapping()
	if m == nil {
		return 0
	}
	return uint64(seg.Locate(m.heapOf(m.info.LocalRank), layout.BytesAt(at, n)))
}

// Mapped returns this rank's address of bytes that another rank has located.
func (c *Comm) Mapped(rank int, place uint64) unsafe.Pointer {
	m := c.mapping()
	local, _ := m.info.Segment.LocalRank(c.ch.World(rank))
	heap := m.heapOf(local)
	return unsafe.Pointer(&seg.Place(place).At(heap, 0, 1)[0])
}

// Expose lets the ranks of this host reach memory of this process through the kernel, by Kernel.
func (c *Comm) Expose() {
	if c.memory != nil {
		c.memory.shm.CrossMemory().Expose()
	}
}

// A Kernel copies from and to private memory of another process of this host. A Kernel does not
// change.
type Kernel struct{ memory crossMemory }

// A Span is some bytes of another process.
type Span = shm.Span

// Kernel returns the Kernel of a rank, nil if the kernel does not let this rank reach that rank.
func (c *Comm) Kernel(rank int) *Kernel {
	m := crossMemory{c.memory.shm.CrossMemory(), c.locals([]int{rank})}
	if !m.Reaches(0) {
		return nil
	}
	return &Kernel{m}
}

// Read copies from consecutive spans, together as long as dst, and changes the spans.
func (k *Kernel) Read(dst []byte, from []Span) error {
	return k.memory.ReadSpans(k.memory.locals[0], dst, from)
}

// Write is the reverse of Read.
func (k *Kernel) Write(src []byte, to []Span) error {
	return k.memory.WriteSpans(k.memory.locals[0], src, to)
}

// Key returns the key by which ranks without shared memory access n bytes of this rank by their
// network devices, past this rank; nil if they cannot. Remote takes another rank's key.
func (c *Comm) Key(at uintptr, n int) []byte {
	return c.e.Mover.Key(mem.Bytes(layout.BytesAt(at, n)))
}

// A Remote is memory of another rank that a network device accesses. Places are that rank's
// addresses. Where too much is under way a method returns 0 or false and has done nothing: the
// caller calls again after Progress.
type Remote struct {
	remote *message.Remote
	c      *Comm
}

// Remote returns the memory of a rank that the key is of.
func (c *Comm) Remote(rank int, key []byte) *Remote { return &Remote{c.ch.Remote(rank, key), c} }

// Reached reports whether access works, as it does once messages have connected the two.
func (r *Remote) Reached() bool { return r.remote.Reached() }

// Write stores n bytes of src, which may be changed at once.
func (r *Remote) Write(at uintptr, src []byte) (n int, err error) { return r.remote.Write(at, src) }

// Read stores n bytes in dst when the Request is complete.
func (r *Remote) Read(at uintptr, dst []byte) (n int, _ Request, err error) {
	n, h, err := r.remote.Read(at, dst)
	return n, r.c.promised(h), err
}

// Flush returns a Request that is complete when all that was written before is stored there.
func (r *Remote) Flush() (_ Request, begun bool, err error) {
	h, begun, err := r.remote.Flush()
	return r.c.promised(h), begun, err
}

// Close frees this rank's resources, when all its operations are complete.
func (r *Remote) Close() { r.remote.Close() }
