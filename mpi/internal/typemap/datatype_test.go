package typemap

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"unsafe"
)

// An arena is memory around a base address, for types whose bytes are within reach of it.
type arena struct {
	bytes []byte
	at    int // of the base
}

func newArena(below, above int) *arena {
	a := &arena{make([]byte, below+above), below}
	for i := range a.bytes {
		a.bytes[i] = byte(i*7 + i>>8 + 1)
	}
	return a
}

func (a *arena) base() uintptr {
	return uintptr(unsafe.Pointer(unsafe.SliceData(a.bytes))) + uintptr(a.at)
}

// must returns a type of a constructor.
func must(t *Type, err error) *Type {
	if err != nil {
		panic(err)
	}
	return t
}

func randomType(t testing.TB, r *rand.Rand) *Type {
	data := make([]byte, 200)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	m := maker{data}
	return m.make(t, 1+r.IntN(4))
}

// agrees compares all that a type tells, and how it packs n elements, with its type map.
func agrees(t testing.TB, of *Type, n int) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("the type is %s", describe(of))
		}
	}()
	m := typeMap(of)
	lb, ub := bounds(m)
	if of.Lb() != lb || of.Ub() != ub || of.Extent() != ub-lb {
		t.Fatalf("bounds %d and %d, extent %d: want %d and %d", of.Lb(), of.Ub(), of.Extent(), lb, ub)
	}
	lo, hi := trueBounds(m)
	if at, extent := of.TrueExtent(); at != lo || extent != hi-lo {
		t.Fatalf("true bounds %d and %d: want %d and %d", at, extent, lo, hi-lo)
	}
	if got, want := of.Uniform(), uniform(m); got != want {
		t.Fatalf("all elements are %v, want %v", got, want)
	}
	at := places(m, n)
	if n*of.Size() != len(at) {
		t.Fatalf("%d elements have %d bytes: want %d", n, n*of.Size(), len(at))
	}
	counts(t, of, m)
	contiguous := true
	for i := 1; i < len(at); i++ {
		contiguous = contiguous && at[i] == at[0]+i
	}
	off, ok := of.Contiguous(n)
	if ok != contiguous || ok && len(at) > 0 && off != at[0] {
		t.Fatalf("%d elements: contiguous %v at %d, want %v (%d bytes)", n, ok, off, contiguous, len(at))
	}
	transfers(t, of, n, at)
	external(t, of, m, n)
}

// uniform returns what all elements are, nil if they differ.
func uniform(m []entry) (of *Basic) {
	for _, e := range m {
		switch {
		case e.basic == nil || e.basic == of:
		case of != nil:
			return nil
		default:
			of = e.basic
		}
	}
	return of
}

// counts checks what the type says of numbers of bytes.
func counts(t testing.TB, of *Type, m []entry) {
	t.Helper()
	want := map[int]int{0: 0}
	bytes, elements := 0, 0
	for range 3 {
		for _, e := range m {
			if e.basic != nil {
				bytes, elements = bytes+e.basic.Size, elements+1
				want[bytes] = elements
			}
		}
	}
	for b := range bytes + 1 {
		n, ok := want[b]
		if ok && of.Bytes(n) != b {
			t.Fatalf("%d elements have %d bytes, want %d", n, of.Bytes(n), b)
		}
		if !ok {
			n = Undefined
		}
		if got := of.Elements(b); got != n {
			t.Fatalf("%d bytes are %d elements, want %d", b, got, n)
		}
		n = Undefined
		if b == 0 || b%of.Size() == 0 {
			n = b / max(1, of.Size())
		}
		if got := of.Count(b); got != n {
			t.Fatalf("%d bytes are %d of the type, want %d", b, got, n)
		}
	}
}

// transfers checks packing and unpacking at once, and from and to every place in the packed
// bytes. at has where each of them lies.
func transfers(t testing.TB, of *Type, n int, at []int) {
	t.Helper()
	lo, hi := 0, 0
	if len(at) > 0 {
		lo, hi = min(0, slices.Min(at)), max(0, slices.Max(at)+1)
	}
	from := newArena(-lo, hi)
	defer runtime.KeepAlive(from)
	want := make([]byte, len(at))
	for i, p := range at {
		want[i] = from.bytes[from.at+p]
	}
	got := make([]byte, len(at)+3)
	if k := of.Pack(got, from.base(), n); k != len(at) || !bytes.Equal(got[:k], want) ||
		!bytes.Equal(got[k:], make([]byte, 3)) {
		t.Fatalf("packed %d bytes %x, want %d %x", k, got, len(want), want)
	}
	to, model := &arena{make([]byte, hi-lo), -lo}, make([]byte, hi-lo)
	defer runtime.KeepAlive(to)
	for i, p := range at {
		model[p-lo] = want[i]
	}
	if k := of.Unpack(to.base(), n, append(want, 1, 2, 3)); k != len(at) || !bytes.Equal(to.bytes, model) {
		t.Fatalf("unpacked %d bytes, want %d, or other bytes", k, len(at))
	}
	for skip := range len(at) + 2 {
		take := 1 + skip*5%23
		k := min(max(0, len(at)-skip), take)
		first, last := min(skip, len(at)), min(skip, len(at))+k
		part := make([]byte, take)
		if g := of.PackAt(part, from.base(), n, skip); g != k || !bytes.Equal(part[:k], want[first:last]) ||
			!bytes.Equal(part[k:], make([]byte, take-k)) {
			t.Fatalf("packed %d bytes behind %d: %d, %x, want %x", take, skip, g, part, want[first:last])
		}
		clear(to.bytes)
		clear(model)
		for i := first; i < last; i++ {
			model[at[i]-lo] = want[i]
		}
		part = append(slices.Clone(want[first:last]), make([]byte, take-k)...)
		if g := of.UnpackAt(to.base(), n, part, skip); g != k || !bytes.Equal(to.bytes, model) {
			t.Fatalf("unpacked %d bytes behind %d: %d, want %d, or other bytes", take, skip, g, k)
		}
	}
}

func TestRandomTypesAreAsTheirTypeMaps(t *testing.T) {
	rounds := 3000
	if testing.Short() {
		rounds = 500
	}
	r := rand.New(rand.NewPCG(1, 2))
	kinds := map[Combiner]int{}
	nested, mixed := 0, 0
	for range rounds {
		of := randomType(t, r)
		kinds[of.combiner]++
		if loops, _ := of.layout().Complexity(); loops > 1 {
			nested++
		}
		if of.mixed != nil {
			mixed++
		}
		agrees(t, of, r.IntN(4))
	}
	for _, c := range []Combiner{DupType, ContiguousType, VectorType, HvectorType, IndexedType, HindexedType,
		IndexedBlockType,
		HindexedBlockType, StructType, SubarrayType, DarrayType, ResizedType} {
		if kinds[c] == 0 {
			t.Errorf("no type of combiner %d among %d", c, rounds)
		}
	}
	if nested < rounds/20 || mixed < rounds/20 {
		t.Errorf("of %d types %d are nested and %d have elements that differ: want more", rounds, nested, mixed)
	}
}

func FuzzTypes(f *testing.F) {
	f.Add([]byte{0, 3, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11})
	f.Add([]byte{3, 0, 1, 0, 2, 11, 3, 0, 1, 2, 5, 6, 7, 9, 1, 2, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		m := maker{data}
		n := m.pick(4)
		agrees(t, m.make(t, 3), n)
	})
}
