// Package memtest tests implementations of mem.Space, and has a fake device for
// tests of code that handles memory which the processor cannot reach.
package memtest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gompi/internal/mem"
)

// Space checks that s keeps the promises of mem.Space. Results have to be those
// of the host bit by bit, except that any NaN stands for any other.
func Space(t *testing.T, s mem.Space) {
	h := harness{s}
	t.Run("Alloc", h.testAlloc)
	t.Run("AllocErrors", h.testAllocErrors)
	t.Run("Copy", h.testCopy)
	t.Run("CopyErrors", h.testCopyErrors)
	t.Run("CopyAll", h.testCopyAll)
	t.Run("Reduce", h.testReduce)
	t.Run("ReduceErrors", h.testReduceErrors)
	t.Run("Divide", h.testDivide)
	t.Run("DivideErrors", h.testDivideErrors)
	t.Run("Concurrent", h.testConcurrent)
}

// A harness holds the Space under test.
type harness struct{ s mem.Space }

// types are all element types.
func types() (all []mem.Type) {
	for t := mem.NoType + 1; t.Valid(); t++ {
		all = append(all, t)
	}
	return all
}

func (h harness) alloc(t *testing.T, typ mem.Type, n int) mem.Buffer {
	t.Helper()
	b, err := h.s.Alloc(typ, n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.s.Free(b) })
	return b
}

// upload returns a copy of the host buffer b in the Space.
func (h harness) upload(t *testing.T, b mem.Buffer) mem.Buffer {
	t.Helper()
	d := h.alloc(t, b.Type(), b.Len())
	if err := h.s.Copy(d, b); err != nil {
		t.Fatal(err)
	}
	return d
}

// download returns a copy of b in host memory.
func (h harness) download(t *testing.T, b mem.Buffer) mem.Buffer {
	t.Helper()
	d := hostLike(b)
	if err := h.s.Copy(d, b); err != nil {
		t.Fatal(err)
	}
	return d
}

func (h harness) testAlloc(t *testing.T) {
	for _, typ := range types() {
		for _, n := range []int{0, 1, 3, 1000} {
			b := h.alloc(t, typ, n)
			if b.Type() != typ || b.Len() != n || n > 0 && b.Space() != h.s {
				t.Fatalf("Alloc(%v, %d) returned %d elements of %v in %s", typ, n, b.Len(), b.Type(), b.Space().Name())
			}
			if b.Addr()%64 != 0 {
				t.Errorf("Alloc(%v, %d) is at %#x, want a multiple of 64", typ, n, b.Addr())
			}
			if got := h.download(t, b).HostSlice(); !slices.Equal(got, make([]byte, len(got))) {
				t.Errorf("Alloc(%v, %d) is not zeroed", typ, n)
			}
			for range 3 {
				if c := h.alloc(t, typ, n); mem.Overlap(b, c) {
					t.Errorf("Alloc(%v, %d) returned %#x and %#x, which overlap", typ, n, b.Addr(), c.Addr())
				}
			}
		}
	}
	if h.s.Name() == "" {
		t.Error("the space has no name")
	}
}

func (h harness) testAllocErrors(t *testing.T) {
	for _, c := range []struct {
		typ mem.Type
		n   int
	}{{mem.NoType, 1}, {mem.Type(255), 1}, {mem.F32, -1}, {mem.F64, math.MaxInt}, {mem.U8, math.MaxInt}} {
		if b, err := h.s.Alloc(c.typ, c.n); err == nil {
			t.Errorf("Alloc(%v, %d) returned %d elements, want an error", c.typ, c.n, b.Len())
		}
	}
}

func (h harness) testCopy(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 7, 64, 100_000} {
		want := Operand(r, mem.U8, n)
		a, b := h.upload(t, want), h.alloc(t, mem.U8, n+2)
		if err := h.s.Copy(b.Slice(1, n+1), a); err != nil {
			t.Fatal(err)
		}
		got := h.download(t, b).HostSlice()
		if !slices.Equal(got[1:n+1], want.HostSlice()) {
			t.Errorf("%d bytes changed on their way from host memory, inside the space and back", n)
		}
		if got[0] != 0 || got[n+1] != 0 {
			t.Errorf("copying %d bytes wrote beyond them", n)
		}
	}
	// The types may differ: what a transport carries are bytes.
	f := h.upload(t, mem.Of([]float32{1, 2}))
	if err := h.s.Copy(h.alloc(t, mem.U8, 8), f); err != nil {
		t.Error(err)
	}
}

func (h harness) testCopyErrors(t *testing.T) {
	d, host := h.alloc(t, mem.I32, 4), mem.Of(make([]int32, 5))
	if err := h.s.Copy(d, host); err == nil {
		t.Error("Copy of 20 bytes to 16 returned no error")
	}
	if err := h.s.Copy(host, d); err == nil {
		t.Error("Copy of 16 bytes to 20 returned no error")
	}
}

func (h harness) testCopyAll(t *testing.T) {
	const each, n = 1000, 7
	want := Operand(rand.New(rand.NewPCG(2, 2)), mem.U8, each*n)
	d, got := h.alloc(t, mem.U8, each*n), mem.Bytes(make([]byte, each*n))
	var here, there, back []mem.Buffer
	for i := range n { // the last is empty, the parts of the Space are in another order
		lo, hi := i*each, min((i+1)*each, (n-1)*each)
		k := (i + 3) % n * each
		here, there, back = append(here, want.Slice(lo, hi)), append(there, d.Slice(k, k+hi-lo)), append(back, got.Slice(lo, hi))
	}
	if err := errors.Join(mem.CopyAll(there, here), mem.CopyAll(back, there), mem.CopyAll(nil, nil)); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.HostSlice()[:(n-1)*each], want.HostSlice()[:(n-1)*each]) {
		t.Error("parts changed on their way from host memory and back")
	}
	there[1] = there[1].Slice(1, each)
	if err := mem.CopyAll(there, here); err == nil {
		t.Error("CopyAll with 1000 bytes for 999 returned no error")
	}
}

// testReduce reduces up to five operands by every operator, for every type it
// is defined for, into memory of its own and into the first and last operand.
func (h harness) testReduce(t *testing.T) {
	for op := mem.Sum; op < mem.Custom; op++ {
		for _, typ := range types() {
			if !op.Defined(typ) {
				continue
			}
			r := rand.New(rand.NewPCG(uint64(op), uint64(typ)))
			for _, n := range []int{0, 1, 9, 40} {
				h.reduce(t, op, operands(r, typ, n, 2), -1, 0)
				h.reduce(t, op, operands(r, typ, n, 3), -1, 0)
				h.reduce(t, op, operands(r, typ, n, 6), -1, 0, 4)
			}
			h.reduce(t, op, operands(r, typ, 2500, 4), -1, 2)
		}
	}
}

// operands returns k host buffers for h.reduce of n elements.
func operands(r *rand.Rand, typ mem.Type, n, k int) (host []mem.Buffer) {
	for range k {
		host = append(host, Operand(r, typ, n+2))
	}
	return host
}

// reduce reduces all of host but the last into the last, and again into each
// operand named, where -1 is the last. Buffers are used from their second
// element to the last but one: so vectors are not aligned, and what lies around
// them is watched.
func (h harness) reduce(t *testing.T, op mem.Op, host []mem.Buffer, into ...int) {
	t.Helper()
	last := len(host) - 1
	typ, n := host[0].Type(), host[0].Len()-2
	inner := func(b mem.Buffer) mem.Buffer { return b.Slice(1, n+1) }
	result := expected(op, host[:last])
	for _, to := range into {
		var whole, part []mem.Buffer
		for _, b := range host {
			d := h.upload(t, b)
			whole, part = append(whole, d), append(part, inner(d))
		}
		if to < 0 {
			to = last
		}
		if err := h.s.Reduce(op, part[to], part[:last]...); err != nil {
			t.Fatalf("%v of %d operands of %d %v: %v", op, last, n, typ, err)
		}
		for i := range whole {
			want := host[i]
			if i == to {
				want = clone(want)
				copy(inner(want).HostSlice(), inner(result).HostSlice())
			}
			if got := h.download(t, whole[i]); !Equal(got, want) {
				t.Fatalf("%v of %d operands of %d %v into %d: buffer %d is\n%x, want\n%x",
					op, last, n, typ, to, i, got.HostSlice(), want.HostSlice())
			}
		}
	}
}

func (h harness) testReduceErrors(t *testing.T) {
	f, g, i := h.alloc(t, mem.F32, 4), h.alloc(t, mem.F32, 5), h.alloc(t, mem.I32, 4)
	for _, c := range []struct {
		name string
		op   mem.Op
		dst  mem.Buffer
		srcs []mem.Buffer
	}{
		{"no operands", mem.Sum, f, nil},
		{"an undefined operator", mem.BAnd, f, []mem.Buffer{f, f}},
		{"an undefined operator of one operand", mem.BAnd, f, []mem.Buffer{f}},
		{"custom", mem.Custom, f, []mem.Buffer{f, f}},
		{"a third operand of another type", mem.Sum, f, []mem.Buffer{f, f, i}},
		{"a result of another type", mem.Sum, i, []mem.Buffer{f, f}},
		{"a third operand of another length", mem.Sum, f, []mem.Buffer{f, f, g}},
		{"a result of another length", mem.Sum, g, []mem.Buffer{f, f}},
	} {
		if err := h.s.Reduce(c.op, c.dst, c.srcs...); err == nil {
			t.Errorf("Reduce with %s returned no error", c.name)
		}
	}
}

func (h harness) testDivide(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, typ := range types() {
		if !mem.Avg.Defined(typ) {
			continue
		}
		for _, by := range []int{1, 2, 3, 7, 64, 1000} {
			host := Operand(r, typ, 700)
			whole := h.upload(t, host)
			if err := h.s.Divide(whole.Slice(1, 699), by); err != nil {
				t.Fatalf("%v divided by %d: %v", typ, by, err)
			}
			want := clone(host)
			quotients(want.Slice(1, 699), by)
			if got := h.download(t, whole); !Equal(got, want) {
				t.Errorf("%v divided by %d:\n%x, want\n%x", typ, by, got.HostSlice(), want.HostSlice())
			}
		}
	}
}

func (h harness) testDivideErrors(t *testing.T) {
	for _, c := range []struct {
		typ mem.Type
		n   int
	}{{mem.F32, 0}, {mem.F32, -2}, {mem.I32, 2}, {mem.Bool, 2}, {mem.F32Loc, 2}} {
		if err := h.s.Divide(h.alloc(t, c.typ, 3), c.n); err == nil {
			t.Errorf("Divide of %v by %d returned no error", c.typ, c.n)
		}
	}
}

// testConcurrent uses the Space from several goroutines, for the race detector
// and for devices whose contexts belong to threads.
func (h harness) testConcurrent(t *testing.T) {
	for g := range 4 {
		t.Run(fmt.Sprint(g), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(g), 4))
			for range 20 {
				h.reduce(t, mem.Sum, operands(r, mem.F32, 1000, 4), -1)
			}
		})
	}
}
