package layout

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"gompi/internal/mem"
)

// A model is a Layout byte by byte: where each packed byte is.
type model []int

// size is the memory that layouts of tests lie in.
const size = 1 << 12

// arena is that memory: on a stack it might move.
var arena [size]byte

// A draw returns a number from 0 to n-1.
type draw func(n int) int

// some makes a Layout of parts of Layouts, deep of them in each other, and its model. What does not
// lie in size bytes is left out.
func some(next draw, deep int) (Layout, model) {
	if deep == 0 {
		n := 1 + next(9)
		m := make(model, n)
		for i := range m {
			m[i] = i
		}
		return Run(n), m
	}
	var b Builder
	var all model
	for range 1 + next(4) {
		l, m := some(next, deep-1)
		n, stride, off := next(5), next(40), next(100)
		l = l.Times(n, stride)
		var turns model
		for i := range n {
			turns = append(turns, m.at(i*stride)...)
		}
		if turns = turns.at(off); !turns.fits() || len(all)+len(turns) > size {
			continue
		}
		b.Add(l.At(off))
		all = append(all, turns...)
	}
	return b.Layout(), all
}

func (m model) at(off int) model {
	moved := make(model, len(m))
	for i, at := range m {
		moved[i] = at + off
	}
	return moved
}

func (m model) fits() bool {
	for _, at := range m {
		if at >= size {
			return false
		}
	}
	return true
}

func (m model) bounds() (lo, hi int) {
	if len(m) == 0 {
		return 0, 0
	}
	lo = m[0]
	for _, at := range m {
		lo, hi = min(lo, at), max(hi, at+1)
	}
	return lo, hi
}

// check compares a Layout with its model: its numbers, and what a part of it packs and unpacks.
func check(l Layout, m model, from, n int) error {
	lo, hi := m.bounds()
	if a, b := l.Bounds(); l.Size() != len(m) || a != lo || b != hi {
		return fmt.Errorf("%d bytes from %d to %d, want %d from %d to %d", l.Size(), a, b, len(m), lo, hi)
	}
	if at, ok := l.Contiguous(); ok {
		for i, want := range m {
			if at+i != want {
				return fmt.Errorf("one run from %d on, and byte %d is at %d", at, i, want)
			}
		}
	}
	from, n = min(from, len(m)), min(n, len(m)-min(from, len(m)))
	if err := checkPart(l, m[from:][:n], from); err != nil {
		return err
	}
	memory := arena[:]
	for i := range memory {
		memory[i] = byte(i*7 + i>>8)
	}
	base := uintptr(unsafe.Pointer(&memory[0]))
	var want []byte
	for _, at := range m[from:][:n] {
		want = append(want, memory[at])
	}
	got := make([]byte, n)
	if k := l.Pack(got, base, from); k != n || !bytes.Equal(got, want) {
		return fmt.Errorf("bytes %d to %d: packed %d, %v, want %v", from, from+n, k, got, want)
	}
	after := bytes.Clone(memory)
	for i := range got {
		got[i] = byte(200 + i)
		after[m[from+i]] = got[i]
	}
	if k := l.Unpack(base, got, from); k != n || !bytes.Equal(memory, after) {
		return fmt.Errorf("bytes %d to %d: unpacked %d, and the memory is not as it should be", from, from+n, k)
	}
	return nil
}

// checkOrder compares what is said of the order of the runs with the runs.
func checkOrder(l Layout) error {
	last, end := -1<<62, -1<<62
	ascending, disjoint := true, true
	l.Part(0, l.Size(), func(off, n int) bool {
		ascending, disjoint = ascending && off >= last, disjoint && off >= end
		last, end = off, off+n
		return true
	})
	disjoint = disjoint && ascending
	if a, d := l.Order(); a != ascending || d != disjoint {
		return fmt.Errorf("the runs ascend: %v, are disjoint: %v; want %v and %v", a, d, ascending, disjoint)
	}
	return nil
}

// checkPart compares the runs of a part with what the model has there, and that they end when told
// to.
func checkPart(l Layout, want model, from int) error {
	var got model
	calls := 0
	all := l.Part(from, len(want), func(off, n int) bool {
		calls++
		for i := range n {
			got = append(got, off+i)
		}
		return true
	})
	if !all || !slices.Equal(got, want) {
		return fmt.Errorf("the runs from byte %d on are %v (%v), want %v", from, got, all, want)
	}
	if last := calls; calls > 0 {
		calls = 0
		if l.Part(from, len(want), func(int, int) bool { calls++; return calls < last }) || calls != last {
			return fmt.Errorf("%d calls after the last of %d returned false", calls, last)
		}
	}
	return nil
}

func TestLayoutsAgreeWithTheirBytes(t *testing.T) {
	const rounds = 5000
	deep, listed, ordered, overlapping := 0, 0, 0, 0
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 1))
		l, m := some(r.IntN, 1+r.IntN(3))
		if err := check(l, m, r.IntN(len(m)+1), r.IntN(len(m)+1)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := checkOrder(l); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if ascending, disjoint := l.Order(); ascending && !disjoint {
			overlapping++
		} else if ascending {
			ordered++
		}
		loops, lists := l.Complexity()
		if loops > 1 {
			deep++
		}
		if lists > 0 {
			listed++
		}
		var scaled model
		for _, at := range m {
			scaled = append(scaled, 3*at, 3*at+1, 3*at+2)
		}
		if scaled.fits() {
			if err := check(l.Scaled(3), scaled, r.IntN(len(m)+1), len(scaled)); err != nil {
				t.Fatalf("seed %d, scaled: %v", seed, err)
			}
		}
	}
	if deep < rounds/20 || listed < rounds/20 {
		t.Errorf("of %d layouts %d have loops in loops and %d lists: want more", rounds, deep, listed)
	}
	if ordered < rounds/20 || overlapping < rounds/100 {
		t.Errorf("of %d layouts %d are in order and %d overlap so: want more", rounds, ordered, overlapping)
	}
}

func FuzzLayout(f *testing.F) {
	f.Add([]byte{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3}, uint16(3), uint16(50))
	f.Fuzz(func(t *testing.T, data []byte, from, n uint16) {
		next := func(n int) int {
			if len(data) == 0 {
				return 0
			}
			k := int(data[0]) % n
			data = data[1:]
			return k
		}
		l, m := some(next, 1+next(3))
		if err := check(l, m, int(from), int(n)); err != nil {
			t.Fatal(err)
		}
	})
}

// Buffers of memory with Layouts are copied, in part, to and from others and those in one run.
func TestCopiesBetweenMemories(t *testing.T) {
	const n = 3 * bounce / 8
	words := func(stride int) (mem.Buffer, []uint64) {
		s := make([]uint64, n*stride)
		for i := range s {
			s[i] = uint64(i)
		}
		word := Run(8)
		p := unsafe.Pointer(&s[0])
		return Lay(uintptr(p), p, word.Times(n, 8*stride), mem.U64, n, false), s
	}
	a, x := words(3)
	b, y := words(2)
	if err := mem.Copy(b.Slice(5, n), a.Slice(0, n-5)); err != nil {
		t.Fatal(err)
	}
	plain := make([]uint64, n)
	if err := mem.Copy(mem.Of(plain), b); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		want := uint64(2 * i)
		if i >= 5 {
			want = x[3*(i-5)]
		}
		if y[2*i] != want || plain[i] != want || y[2*i+1] != uint64(2*i+1) {
			t.Fatalf("element %d is %d, %d in one run, and the one behind it %d", i, y[2*i], plain[i], y[2*i+1])
		}
	}
	if a.IsHost() || a.OnDevice() || !a.IsScattered() || a.IsReadOnly() {
		t.Error("memory with a layout is host memory in one run, or a device's")
	}
	if err := mem.Copy(a, mem.Of(plain[1:])); err == nil {
		t.Error("a copy of fewer elements succeeds")
	}
}
