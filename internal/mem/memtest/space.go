// Package memtest tests implementations of mem.Space, and has a fake device for tests of code that
// handles memory outside the processor's reach.
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

// Space checks that s keeps the promises of mem.Space.
func Space(t *testing.T, s mem.Space) {
	h := harness{s}
	t.Run("Alloc", h.testAlloc)
	t.Run("AllocErrors", h.testAllocErrors)
	t.Run("Copy", h.testCopy)
	t.Run("CopyErrors", h.testCopyErrors)
	t.Run("CopyAll", h.testCopyAll)
	t.Run("Concurrent", h.testConcurrent)
}

// A harness holds the Space under test.
type harness struct{ s mem.Space }

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
	d, err := mem.Host.Alloc(b.Type(), b.Len())
	if err != nil {
		t.Fatal(err)
	}
	if err := h.s.Copy(d, b); err != nil {
		t.Fatal(err)
	}
	return d
}

func randomBytes(r *rand.Rand, n int) mem.Buffer {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return mem.Bytes(b)
}

func (h harness) testAlloc(t *testing.T) {
	for typ := mem.NoType + 1; typ.Valid(); typ++ {
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
		want := randomBytes(r, n)
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
	// The types may differ: a transport carries bytes.
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
	want := randomBytes(rand.New(rand.NewPCG(2, 2)), each*n)
	d, got := h.alloc(t, mem.U8, each*n), mem.Bytes(make([]byte, each*n))
	var here, there, back []mem.Buffer
	for i := range n { // the last is empty, the parts of the Space are in another order
		lo, hi := i*each, min((i+1)*each, (n-1)*each)
		k := (i + 3) % n * each
		here, there, back = append(here, want.Slice(lo, hi)), append(there, d.Slice(k, k+hi-lo)),
			append(back, got.Slice(lo, hi))
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

// testConcurrent uses the Space from several goroutines, for the race detector and for devices
// whose contexts belong to threads.
func (h harness) testConcurrent(t *testing.T) {
	for g := range 4 {
		t.Run(fmt.Sprint(g), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(g), 4))
			for range 20 {
				want := randomBytes(r, 4000)
				if got := h.download(t, h.upload(t, want)); !slices.Equal(got.HostSlice(), want.HostSlice()) {
					t.Fatal("4000 bytes changed on their way from host memory and back")
				}
			}
		})
	}
}
