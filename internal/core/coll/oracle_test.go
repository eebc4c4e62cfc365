package coll

import (
	"bytes"
	"fmt"
	"sync"

	"gompi/internal/core/call"
	"gompi/internal/mem"
)

// A sum is what a test reduces: an operator and elements to go with it.
type sum struct {
	name  string
	typ   mem.Type
	op    call.Op
	rough bool // results depend on the order of operations
}

// Small whole numbers, whose combination is exact in any order.
var exactSums = []sum{
	{name: "float32 sum", typ: mem.F32, op: call.Op{Kind: mem.Sum}},
	{name: "float64 prod", typ: mem.F64, op: call.Op{Kind: mem.Prod}},
	{name: "int32 min", typ: mem.I32, op: call.Op{Kind: mem.Min}},
	{name: "int64 max", typ: mem.I64, op: call.Op{Kind: mem.Max}},
	{name: "float64 avg", typ: mem.F64, op: call.Op{Kind: mem.Avg}},
	{name: "float32 avg", typ: mem.F32, op: call.Op{Kind: mem.Avg}},
	{name: "uint8 sum", typ: mem.U8, op: call.Op{Kind: mem.Sum}},
	{name: "uint8 bxor", typ: mem.U8, op: call.Op{Kind: mem.BXor}},
	{name: "bfloat16 sum", typ: mem.BF16, op: call.Op{Kind: mem.Sum}},
	{name: "float64loc minloc", typ: mem.F64Loc, op: call.Op{Kind: mem.MinLoc}},
}

// What only an algorithm that keeps the order of order.go gets right to the bit.
var orderedSums = []sum{
	{name: "float32 sum, rough", typ: mem.F32, op: call.Op{Kind: mem.Sum}, rough: true},
	{name: "float64 avg, rough", typ: mem.F64, op: call.Op{Kind: mem.Avg}, rough: true},
	{name: "float16 prod, rough", typ: mem.F16, op: call.Op{Kind: mem.Prod}, rough: true},
	{name: "affine maps", typ: mem.I64Loc, op: call.Op{Kind: mem.Custom, Func: composeAffine}},
}

// composeAffine takes pairs (a, b) for the maps x -> ax+b of 64-bit integers
// and makes acc the map that applies in first: associative, not commutative.
func composeAffine(acc, in mem.Buffer) {
	f, g := mem.Slice[mem.Loc[int64]](acc), mem.Slice[mem.Loc[int64]](in)
	for i := range f {
		f[i] = mem.Loc[int64]{Value: f[i].Value * g[i].Value, Index: f[i].Value*g[i].Index + f[i].Index}
	}
}

// fill makes the vector of a rank.
func (s sum) fill(b mem.Buffer, rank int) {
	mix := func(i int) int { return (rank*7919 + i*104729 + rank*i*31) >> 3 }
	switch s.typ {
	case mem.F32:
		set(b, func(i int) float32 {
			if s.rough {
				return float32(mix(i)%1009) / 7
			}
			return float32(mix(i) % 16)
		})
	case mem.F64:
		set(b, func(i int) float64 {
			if s.rough {
				return float64(mix(i)%1009) / 7
			}
			return float64(int(1) << (mix(i) % 3))
		})
	case mem.F16:
		set(b, func(i int) mem.Float16 { return mem.ToFloat16(1 + float32(mix(i)%64)/511) })
	case mem.BF16:
		set(b, func(i int) mem.BFloat16 { return mem.ToBFloat16(float32(mix(i) % 8)) })
	case mem.I32:
		set(b, func(i int) int32 { return int32(mix(i)%2000 - 1000) })
	case mem.I64:
		set(b, func(i int) int64 { return int64(mix(i)%2000 - 1000) })
	case mem.U8:
		set(b, func(i int) uint8 { return uint8(mix(i)) })
	case mem.F64Loc:
		set(b, func(i int) mem.Loc[float64] { return mem.Loc[float64]{Value: float64(mix(i) % 3), Index: int64(rank)} })
	case mem.I64Loc:
		set(b, func(i int) mem.Loc[int64] {
			return mem.Loc[int64]{Value: int64(mix(i)%5 + 1), Index: int64(mix(i + 1))}
		})
	}
}

func set[T mem.Scalar](b mem.Buffer, f func(i int) T) {
	for i, s := 0, mem.Slice[T](b); i < len(s); i++ {
		s[i] = f(i)
	}
}

// An oracle knows the inputs of every rank and, by the plainest means, the
// results.
type oracle struct {
	ranks int
	mu    sync.Mutex
	known map[oracleKey]*answers
}

type oracleKey struct {
	name string
	n    int
}

type answers struct {
	sum
	in    []mem.Buffer
	total mem.Buffer
	upto  []mem.Buffer // [r]: ranks 0 to r
}

func newOracle(ranks int) *oracle { return &oracle{ranks: ranks, known: map[oracleKey]*answers{}} }

// ask returns what is known of s with n elements per rank.
func (o *oracle) ask(s sum, n int) *answers {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := oracleKey{s.name, n}
	if a := o.known[key]; a != nil {
		return a
	}
	a := &answers{sum: s}
	for r := range o.ranks {
		b := alloc(s.typ, n)
		s.fill(b, r)
		a.in = append(a.in, b)
	}
	for r := range o.ranks {
		a.upto = append(a.upto, a.window(r, 1<<depth(r+1)))
		a.finish(a.upto[r], r+1)
	}
	a.total = a.tree(0, o.ranks)
	a.finish(a.total, o.ranks)
	o.known[key] = a
	return a
}

// tree is T of order.go.
func (a *answers) tree(lo, hi int) mem.Buffer {
	if hi-lo == 1 {
		return clone(a.in[lo])
	}
	mid := lo + 1<<(depth(hi-lo)-1)
	return a.join(a.tree(lo, mid), a.tree(mid, hi))
}

// window is W of order.go, written as scanDoubling makes it: of the width ranks up to r,
// or as many as there are, with width = 2^k.
func (a *answers) window(r, width int) mem.Buffer {
	switch {
	case width == 1:
		return clone(a.in[r])
	case r < width/2:
		return a.window(r, width/2)
	}
	return a.join(a.window(r-width/2, width/2), a.window(r, width/2))
}

func (a *answers) join(x, y mem.Buffer) mem.Buffer {
	if err := a.op.Combine(x, x, y); err != nil {
		panic(err)
	}
	return x
}

func (a *answers) finish(b mem.Buffer, n int) {
	if err := a.op.Finish(b, n); err != nil {
		panic(err)
	}
}

func alloc(t mem.Type, n int) mem.Buffer {
	b, err := mem.Host.Alloc(t, n)
	if err != nil {
		panic(err)
	}
	return b
}

// fenced returns n elements with a margin on both sides that tells when
// something wrote past the ends.
func fenced(t mem.Type, n int) (b mem.Buffer, intact func() bool) {
	if !t.Valid() {
		t = mem.U8 // of a buffer that is not looked at
	}
	const margin = 3
	all := alloc(t, n+2*margin)
	fence := bytes.Repeat([]byte{0x5a}, all.Size())
	copy(all.HostSlice(), fence)
	w := margin * t.Size()
	return all.Slice(margin, margin+n), func() bool {
		s := all.HostSlice()
		return bytes.Equal(s[:w], fence[:w]) && bytes.Equal(s[len(s)-w:], fence[:w])
	}
}

// differ describes how got is not want; it is empty if they are equal bit by bit.
func differ(got, want mem.Buffer) string {
	if got.Len() != want.Len() {
		return fmt.Sprintf("%d elements, want %d", got.Len(), want.Len())
	}
	g, w, size := got.HostSlice(), want.HostSlice(), got.Type().Size()
	for i := 0; i < len(g); i += size {
		if !bytes.Equal(g[i:i+size], w[i:i+size]) {
			return fmt.Sprintf("element %d of %d is %x, want %x", i/size, got.Len(), g[i:i+size], w[i:i+size])
		}
	}
	return ""
}
