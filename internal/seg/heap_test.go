package seg

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
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
	if off%pageSize != 0 || n%pageSize != 0 || n == 0 {
		b.t.Fatalf("%d bytes from %d on are no whole pages", n, off)
	}
	if exists && b.exist+n/pageSize > b.limit {
		return errors.New("no memory")
	}
	for i := off / pageSize; i < (off+n)/pageSize; i++ {
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
	return NewHeap(make([]byte, pages*pageSize),
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
		offs = append(offs, off)
	}
	for _, off := range offs {
		h.Free(off)
	}
	if b.exist != 0 || h.Len() != 0 {
		t.Errorf("%d pages exist and %d places are taken when all is given back", b.exist, h.Len())
	}
	if off, err := h.Reserve(pages * pageSize); err != nil || off != 0 {
		t.Errorf("all of it: got a place at %d and %v", off, err)
	}
}

// What is long begins where huge pages do, as long as there is such a place.
func TestHeapPutsWhatIsLongOnHugePages(t *testing.T) {
	h, _ := newTestHeap(t, 4*hugePage/pageSize) // wherever it lies, three huge pages are whole
	var offs []int
	for range 3 {
		off, err := h.Reserve(hugePage)
		if err != nil {
			t.Fatal(err)
		}
		if at := uintptr(unsafe.Pointer(&h.mem[off])); at%hugePage != 0 {
			t.Errorf("it begins %d behind where a huge page does", at%hugePage)
		}
		offs = append(offs, off)
	}
	if offs[0] > 0 {
		if off, err := h.Reserve(offs[0]); err != nil || off != 0 {
			t.Errorf("the %d bytes before: got a place at %d and %v", offs[0], off, err)
		}
		h.Free(0)
	}
	h.Free(offs[1])
	h.Free(offs[2])
	if off, err := h.Reserve(2*hugePage + pageSize); offs[0]+3*hugePage < len(h.mem) && (err != nil || off != offs[1]) {
		t.Errorf("two and a bit: got a place at %d and %v, want %d", off, err, offs[1])
	}
}

func TestHeapTakesAPlaceWhereNoHugePageBegins(t *testing.T) {
	h, _ := newTestHeap(t, hugePage/pageSize)
	if off, err := h.Reserve(hugePage); err != nil || off != 0 {
		t.Errorf("got a place at %d and %v, want all of it", off, err)
	}
}

func TestHeapIsExhausted(t *testing.T) {
	h, b := newTestHeap(t, 10)
	b.limit = 5
	if off, err := h.Reserve(11 * pageSize); err == nil {
		t.Errorf("more than there is: got a place at %d", off)
	}
	if off, err := h.Reserve(math.MaxInt); err == nil ||
		!strings.Contains(err.Error(), fmt.Sprint("no place for ", math.MaxInt)) {
		t.Errorf("more than can be rounded up: got a place at %d and %v", off, err)
	}
	off, err := h.Reserve(6 * pageSize)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Claim(off); err == nil {
		t.Error("claimed more memory than there is")
	}
	h.Free(off)
	if off, err = h.Reserve(5 * pageSize); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Claim(off); err != nil {
		t.Errorf("what there is: %v", err)
	}
}
