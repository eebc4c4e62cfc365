package core_test

import (
	"testing"

	"gompi/comm"
)

// elements are the values with which an element type is tested: small whole
// numbers, so that sums and products are exact in any order, and what operators
// make of two of them.
type elements[T comm.Scalar] struct {
	at     func(rank, i int) T
	ops    map[comm.Op]func(a, b T) T
	divide func(a T, n int) T // for Avg, nil if there is none
}

// small is the number behind most elements: 0 to 12, different from rank to rank
// and from index to index.
func small(rank, i int) int { return (rank*5 + i*3 + i*i%7) % 13 }

type real interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

func reals[T interface {
	real
	comm.Scalar
}]() elements[T] {
	return elements[T]{
		at: func(rank, i int) T { return T(small(rank, i)) },
		ops: map[comm.Op]func(a, b T) T{
			comm.Sum:  func(a, b T) T { return a + b },
			comm.Prod: func(a, b T) T { return a * b },
			comm.Min:  func(a, b T) T { return min(a, b) },
			comm.Max:  func(a, b T) T { return max(a, b) },
		},
		divide: func(a T, n int) T { return a / T(n) },
	}
}

func truth[T real](a T) bool { return a != 0 }

func number[T real](b bool) T {
	if b {
		return 1
	}
	return 0
}

func integers[T interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
	comm.Scalar
}]() elements[T] {
	e := reals[T]()
	e.divide = nil
	e.ops[comm.LAnd] = func(a, b T) T { return number[T](truth(a) && truth(b)) }
	e.ops[comm.LOr] = func(a, b T) T { return number[T](truth(a) || truth(b)) }
	e.ops[comm.LXor] = func(a, b T) T { return number[T](truth(a) != truth(b)) }
	e.ops[comm.BAnd] = func(a, b T) T { return a & b }
	e.ops[comm.BOr] = func(a, b T) T { return a | b }
	e.ops[comm.BXor] = func(a, b T) T { return a ^ b }
	return e
}

func complexes[T complex64 | complex128]() elements[T] {
	return elements[T]{
		at: func(rank, i int) T { return T(complex(float64(small(rank, i)), float64(small(i, rank)))) },
		ops: map[comm.Op]func(a, b T) T{
			comm.Sum:  func(a, b T) T { return a + b },
			comm.Prod: func(a, b T) T { return a * b },
		},
		divide: func(a T, n int) T { return a / T(complex(float64(n), 0)) },
	}
}

// A half is a 16-bit float.
type half interface {
	comm.Float16 | comm.BFloat16
	Float32() float32
}

func halves[T half](from func(float32) T) elements[T] {
	e := elements[T]{
		at:     func(rank, i int) T { return from(float32(small(rank, i))) },
		ops:    map[comm.Op]func(a, b T) T{},
		divide: func(a T, n int) T { return from(a.Float32() / float32(n)) },
	}
	for op, f := range reals[float32]().ops {
		if op != comm.Prod { // too large to be exact
			e.ops[op] = func(a, b T) T { return from(f(a.Float32(), b.Float32())) }
		}
	}
	return e
}

func bools() elements[bool] {
	return elements[bool]{
		at: func(rank, i int) bool { return small(rank, i)%3 == 0 },
		ops: map[comm.Op]func(a, b bool) bool{
			comm.LAnd: func(a, b bool) bool { return a && b },
			comm.LOr:  func(a, b bool) bool { return a || b },
			comm.LXor: func(a, b bool) bool { return a != b },
			comm.BAnd: func(a, b bool) bool { return a && b },
			comm.BOr:  func(a, b bool) bool { return a || b },
			comm.BXor: func(a, b bool) bool { return a != b },
		},
	}
}

// locs are pairs with many equal values, among which the lowest index wins.
func locs[L comm.Scalar](pair func(value, index int) L, parts func(L) (value float64, index int64)) elements[L] {
	pick := func(sign float64) func(a, b L) L {
		return func(a, b L) L {
			v, i := parts(a)
			w, j := parts(b)
			if sign*w < sign*v || v == w && j < i {
				return b
			}
			return a
		}
	}
	return elements[L]{
		at:  func(rank, i int) L { return pair(small(rank, i)%3, 100-rank) },
		ops: map[comm.Op]func(a, b L) L{comm.MinLoc: pick(1), comm.MaxLoc: pick(-1)},
	}
}

// fold combines element i of ranks 0 to n-1, from the left.
func (e elements[T]) fold(op comm.Op, n, i int) T {
	f := e.ops[op]
	if op == comm.Avg {
		f = e.ops[comm.Sum]
	}
	v := e.at(0, i)
	for r := 1; r < n; r++ {
		v = f(v, e.at(r, i))
	}
	if op == comm.Avg {
		v = e.divide(v, n)
	}
	return v
}

// period is after how many indices the elements of a rank repeat: small takes an index modulo 7 and
// modulo 13.
const period = 7 * 13

// repeated returns n elements, of which at says the first period.
func repeated[T any](n int, at func(i int) T) []T {
	v := make([]T, n)
	for i := range min(n, period) {
		v[i] = at(i)
	}
	for i := period; i < n; i *= 2 {
		copy(v[i:], v[:i])
	}
	return v
}

// vector returns n elements of a rank.
func (e elements[T]) vector(rank, n int) []T {
	return repeated(n, func(i int) T { return e.at(rank, i) })
}

// folded returns n elements combined over the first ranks.
func (e elements[T]) folded(op comm.Op, ranks, n int) []T {
	return repeated(n, func(i int) T { return e.fold(op, ranks, i) })
}

func TestElementsRepeat(t *testing.T) {
	for rank := range 20 {
		for i := range 1000 {
			if small(rank, i) != small(rank, i+period) || small(i, rank) != small(i+period, rank) {
				t.Fatalf("element %d of rank %d is not that %d on", i, rank, period)
			}
		}
	}
	e := integers[int64]()
	for _, n := range []int{0, 1, period, 2*period + 1, 1000} {
		for i, v := range e.vector(3, n) {
			if v != e.at(3, i) {
				t.Fatalf("element %d of %d is %d, want %d", i, n, v, e.at(3, i))
			}
		}
	}
}
