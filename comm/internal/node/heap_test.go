package node

import (
	"errors"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// A book remembers what pages of a heap exist.
type book struct {
	t     *testing.T
	pages []bool
	limit int // of pages that may exist
	exist int
}

func (b *book) set(off, n int, exists bool) error {
	b.t.Helper()
	if off%heapAlign != 0 || n%heapAlign != 0 || n == 0 {
		b.t.Fatalf("%d bytes from %d on are no whole pages", n, off)
	}
	if exists && b.exist+n/heapAlign > b.limit {
		return errors.New("no memory")
	}
	for i := off / heapAlign; i < (off+n)/heapAlign; i++ {
		if b.pages[i] == exists && exists {
			b.t.Fatalf("page %d is claimed twice", i)
		}
		if b.pages[i] != exists {
			b.exist += map[bool]int{true: 1, false: -1}[exists]
		}
		b.pages[i] = exists
	}
	return nil
}

func newTestHeap(t *testing.T, pages int) (*Heap, *book) {
	b := &book{t: t, pages: make([]bool, pages), limit: pages}
	return NewHeap(make([]byte, pages*heapAlign),
		func(off, n int) error { return b.set(off, n, true) },
		func(off, n int) error { return b.set(off, n, false) }), b
}

func TestHeapTakesAndGivesBackWholePages(t *testing.T) {
	const pages = 2000
	h, b := newTestHeap(t, pages)
	rng := rand.New(rand.NewPCG(1, 2))
	var offs []int
	for range 5000 {
		if len(offs) > 0 && rng.IntN(2) == 0 {
			i := rng.IntN(len(offs))
			h.Free(offs[i])
			offs[i] = offs[len(offs)-1]
			offs = offs[:len(offs)-1]
			continue
		}
		n := 1 + rng.IntN(1<<(10+rng.IntN(13)))
		off, err := h.Reserve(n)
		if err != nil {
			continue // the book says whether places overlap
		}
		mem, err := h.Claim(off)
		if err != nil || len(mem) < n || &mem[0] != &h.mem[off] {
			t.Fatalf("%d bytes: got %d and %v", n, len(mem), err)
		}
		if at := uintptr(unsafe.Pointer(&mem[0])); n >= hugePage && at%hugePage != 0 {
			t.Fatalf("%d bytes begin %d behind where a huge page would", n, at%hugePage)
		}
		offs = append(offs, off)
	}
	for _, off := range offs {
		h.Free(off)
	}
	if b.exist != 0 || h.Len() != 0 {
		t.Errorf("%d pages exist and %d places are taken when all is given back", b.exist, h.Len())
	}
	off, err := h.Reserve(pages*heapAlign - hugePage) // wherever huge pages would begin
	if err != nil || off >= hugePage {
		t.Errorf("all of it: got a place at %d and %v", off, err)
	}
	if off > 0 {
		if gap, err := h.Reserve(off); err != nil || gap != 0 {
			t.Errorf("the %d bytes before: got a place at %d and %v", off, gap, err)
		}
	}
}

func TestHeapIsExhausted(t *testing.T) {
	h, b := newTestHeap(t, 10)
	b.limit = 5
	if off, err := h.Reserve(11 * heapAlign); err == nil {
		t.Errorf("more than there is: got a place at %d", off)
	}
	off, err := h.Reserve(6 * heapAlign)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Claim(off); err == nil {
		t.Error("claimed more memory than there is")
	}
	h.Free(off)
	if off, err = h.Reserve(5 * heapAlign); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Claim(off); err != nil {
		t.Errorf("what there is: %v", err)
	}
}
