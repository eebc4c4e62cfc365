package memory

import (
	"fmt"
	"slices"
	"unsafe"

	"gompi/internal/boot"
	"gompi/internal/core/layout"
	"gompi/internal/core/message"
	"gompi/internal/core/path"
	"gompi/internal/core/shmsync"
	"gompi/internal/mem"
	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/transport/shm"
)

// A Host is the memory that a rank shares with the others of its host.
type Host struct {
	Pool  *shmsync.Pool // nil, like SHM, if only programs' mapped memory is shared
	Heap  *seg.Heap
	Limit func() seg.Limit
	SHM   *shm.Transport

	info *boot.Info
	late Allocations // to be freed, but a peer may still write there
}

// NewHost returns the memory that a rank shares, whose transport is t, nil if nothing is shared.
func NewHost(info *boot.Info, t *shm.Transport) *Host {
	s := info.Segment
	if s.Ranks() > path.MaxShared {
		return nil
	}
	h := NewMapped(info)
	if h == nil {
		return nil
	}
	h.SHM = t
	blocks, _ := seg.Divide(s.Arena(info.LocalRank))
	h.Pool = shmsync.NewPool(blocks, path.LargeBuffer(s.Ranks()),
		func(off, n int) error { return s.ClaimArena(info.LocalRank, off, n) }, h.ended)
	return h
}

// ended reports whether a rank of this host has stopped touching shared memory.
func (h *Host) ended(rank world.Rank) bool {
	i, ok := h.info.Segment.LocalRank(rank)
	return ok && h.info.Segment.State(i) >= seg.Closed
}

// NewMapped returns memory that the ranks of this host map, and no transport uses, nil if there is
// none.
func NewMapped(info *boot.Info) *Host {
	s := info.Segment
	if s == nil || s.Arena(info.LocalRank) == nil {
		return nil
	}
	blocks, heap := seg.Divide(s.Arena(info.LocalRank))
	return &Host{info: info, Limit: seg.MemoryLimit, Heap: seg.NewHeap(heap,
		func(off, n int) error { return s.ClaimHuge(info.LocalRank, len(blocks)+off, n) },
		func(off, n int) error { return s.ReleaseArena(info.LocalRank, len(blocks)+off, n) })}
}

// heapOf returns the heap of a rank of this host.
func (h *Host) heapOf(local world.LocalRank) []byte {
	_, heap := seg.Divide(h.info.Segment.Arena(local))
	return heap
}

// Sweep frees memory of this rank to which peers have stopped writing.
func (h *Host) Sweep(e *message.Engine) {
	if h.Pool != nil {
		h.Pool.Sweep()
	}
	h.late.mu.Lock()
	defer h.late.mu.Unlock()
	h.late.all = slices.DeleteFunc(h.late.all, func(x Allocation) bool { return h.free(e, x) })
}

// free frees x in the heap if unused.
func (h *Host) free(e *message.Engine, x Allocation) bool {
	over := unused(e, x)
	if over {
		h.Heap.Free(x.Heap)
	}
	return over
}

// Alloc allocates n elements in the heap, without communication.
func (h *Host) Alloc(e *message.Engine, t mem.Type, n int) (Allocation, error) {
	h.Sweep(e)
	size := n * t.Size()
	if err := hasRoom(size, h.Limit()); err != nil {
		return Allocation{}, err
	}
	off, err := h.Heap.Reserve(size)
	if err != nil {
		return Allocation{}, fmt.Errorf("%w: %w", ErrMemory, err)
	}
	bytes, err := h.Heap.Claim(off)
	if err != nil {
		h.Heap.Free(off)
		return Allocation{}, fmt.Errorf("%w: %w", ErrMemory, err)
	}
	return Allocation{mem.HostBytes(t, n, bytes), off, nil}, nil
}

// Maps reports whether a rank of the job maps h, which may be nil.
func (h *Host) Maps(rank world.Rank) bool {
	if h == nil {
		return false
	}
	_, ok := h.info.Segment.LocalRank(rank)
	return ok
}

// Locate returns the place of n bytes of this rank, for ranks that map h; 0 if the bytes are not in
// the heap, or h is nil.
func (h *Host) Locate(at uintptr, n int) uint64 {
	if h == nil {
		return 0
	}
	return uint64(seg.Locate(h.heapOf(h.info.LocalRank), layout.BytesAt(at, n)))
}

// Mapped returns this rank's address of bytes that another rank of the job has located.
func (h *Host) Mapped(rank world.Rank, place uint64) unsafe.Pointer {
	local, _ := h.info.Segment.LocalRank(rank)
	return unsafe.Pointer(&seg.Place(place).At(h.heapOf(local), 0, 1)[0])
}

// A Private is memory of processes of this host that only its owner maps, by members of a
// communicator.
type Private struct {
	*shm.CrossMemory
	locals []world.LocalRank
}

// Private returns the private memory of some ranks.
func (h *Host) Private(locals []world.LocalRank) Private { return Private{h.SHM.CrossMemory(), locals} }

// Reaches reports whether the kernel lets this rank reach a member.
func (p Private) Reaches(member int) bool { return p.CrossMemory.Reaches(p.locals[member]) }

// Read copies bytes of a member to dst.
func (p Private) Read(member int, dst []byte, from uintptr) error {
	return p.CrossMemory.Read(p.locals[member], dst, from)
}

// Write is the reverse of Read.
func (p Private) Write(member int, src []byte, to uintptr) error {
	return p.CrossMemory.Write(p.locals[member], src, to)
}

// A Kernel copies from and to private memory of another process of this host. A Kernel does not
// change.
type Kernel struct {
	memory *shm.CrossMemory
	of     world.LocalRank
}

// A Span is some bytes of another process.
type Span = shm.Span

// Kernel returns the Kernel of a rank, nil if the kernel does not let this rank reach that rank.
func (h *Host) Kernel(local world.LocalRank) *Kernel {
	if m := h.SHM.CrossMemory(); m.Reaches(local) {
		return &Kernel{m, local}
	}
	return nil
}

// Read copies consecutive spans, together as long as dst, to dst. It changes the slice of spans.
func (k *Kernel) Read(dst []byte, from []Span) error { return k.memory.ReadSpans(k.of, dst, from) }

// Write is the reverse of Read.
func (k *Kernel) Write(src []byte, to []Span) error { return k.memory.WriteSpans(k.of, src, to) }
