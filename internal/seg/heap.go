package seg

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"unsafe"
)

// hugePage is the size of huge pages where ordinary pages have 4 KiB. An allocation of that length,
// or longer, begins at the address of a huge page, so that they can be claimed (np=2, gather of 4
// MiB without and with them: 338 and 226 us).
const hugePage = 2 << 20

// Divide divides a rank's arena: the first quarter is for the blocks of package shmsync, the rest
// is the rank's heap.
func Divide(arena []byte) (sync, heap []byte) {
	at := len(arena) / 4 &^ (pageSize - 1)
	return arena[:at:at], arena[at:]
}

// A Heap is a rank's own part of the symmetric heap behind comm.Alloc, which all ranks of the host
// read and write in place. Only that rank allocates there, whole pages each, so no dead process can
// hold its lock. Collectives and messages synchronize ranks. Any goroutine may call methods.
type Heap struct {
	mem     []byte
	claim   func(off, n int) error // makes memory of a part, zeroed
	release func(off, n int) error // makes a hole of a part

	mu    sync.Mutex
	taken []extent // by place, none overlaps another
}

// An extent is a part of a heap: whole pages.
type extent struct{ off, n int }

func (e extent) end() int { return e.off + e.n }

// NewHeap returns the heap in mem. claim backs a part with memory, or fails; release frees it.
func NewHeap(mem []byte, claim func(off, n int) error, release func(off, n int) error) *Heap {
	return &Heap{mem: mem, claim: claim, release: release}
}

// Reserve reserves the first free n > 0 bytes, without allocating memory, or fails without any.
func (h *Heap) Reserve(n int) (off int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n > len(h.mem) {
		return 0, fmt.Errorf("no place for %d bytes in a heap of %d bytes", n, len(h.mem))
	}
	n = (n + pageSize - 1) &^ (pageSize - 1)
	i, off := h.gap(n, hugePage)
	if n < hugePage || off < 0 {
		i, off = h.gap(n, uintptr(pageSize))
	}
	if n <= 0 || off < 0 {
		return 0, fmt.Errorf("no place for %d bytes among %d allocations in a heap of %d bytes", n,
			len(h.taken), len(h.mem))
	}
	h.taken = slices.Insert(h.taken, i, extent{off, n})
	return off, nil
}

// gap returns the first place for n bytes whose address is a multiple of align, and the number of
// allocations before that place. off is -1 if there is none.
func (h *Heap) gap(n int, align uintptr) (before, off int) {
	fit := func(off int) int {
		at := uintptr(unsafe.Pointer(unsafe.SliceData(h.mem))) + uintptr(off)
		return off + int(-at%align)
	}
	off = fit(0)
	for i, e := range h.taken {
		if e.off-off >= n {
			return i, off
		}
		off = fit(e.end())
	}
	if len(h.mem)-off < n {
		return 0, -1
	}
	return len(h.taken), off
}

// Claim allocates zeroed memory for the reserved place at off, and returns this memory.
func (h *Heap) Claim(off int) ([]byte, error) {
	h.mu.Lock()
	e := h.taken[h.find(off)]
	h.mu.Unlock()
	if err := h.claim(e.off, e.n); err != nil {
		return nil, err
	}
	return h.mem[e.off:e.end():e.end()], nil
}

// Free gives back the allocation at off: its place and its memory.
func (h *Heap) Free(off int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := h.find(off)
	_ = h.release(off, h.taken[i].n) // memory that stays is claimed again with the place
	h.taken = slices.Delete(h.taken, i, i+1)
}

// find returns the index of the allocation at off.
func (h *Heap) find(off int) int {
	i, ok := slices.BinarySearchFunc(h.taken, off, func(e extent, off int) int { return cmp.Compare(e.off, off) })
	if !ok {
		panic(fmt.Sprintf("seg: nothing is allocated at %d", off))
	}
	return i
}

// Len returns the number of allocated places.
func (h *Heap) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.taken)
}
