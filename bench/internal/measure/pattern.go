package measure

import (
	"bytes"
	"fmt"

	"gompi/internal/mem"
)

// period is the number of elements after which a rank's input repeats. It is prime, so that a
// misplaced block is detected.
const period = 1021

// patterns are the elements that each rank's vector repeats. Values are small and whole, so that
// their sums do not round in any order.
type patterns struct {
	t  mem.Type
	by []mem.Buffer
}

// newPatterns returns the inputs of a number of ranks, for results of op.
func newPatterns(t mem.Type, op mem.Op, ranks int) (*patterns, error) {
	values := 4
	if op == mem.Prod {
		values = 2 // powers of two: products of 3 would round
	}
	p := &patterns{t: t, by: make([]mem.Buffer, ranks)}
	for rank := range p.by {
		b, err := mem.Host.Alloc(t, period)
		if err != nil {
			return nil, err
		}
		if err := setElements(b, rank, values); err != nil {
			return nil, err
		}
		p.by[rank] = b
	}
	return p, nil
}

// value is the number at index i of rank's pattern, from 1 to values.
func value(rank, i, values int) int {
	x := uint32(i+1)*2654435761 ^ uint32(rank+1)*2246822519
	x ^= x >> 15
	x *= 2246822519
	return int(x>>24)%values + 1
}

// setElements stores rank's pattern into b.
func setElements(b mem.Buffer, rank, values int) error {
	at := func(i int) int { return value(rank, i, values) }
	switch b.Type() {
	case mem.I8:
		setNumbers[int8](b, at)
	case mem.I16:
		setNumbers[int16](b, at)
	case mem.I32:
		setNumbers[int32](b, at)
	case mem.I64:
		setNumbers[int64](b, at)
	case mem.U8:
		setNumbers[uint8](b, at)
	case mem.U16:
		setNumbers[uint16](b, at)
	case mem.U32:
		setNumbers[uint32](b, at)
	case mem.U64:
		setNumbers[uint64](b, at)
	case mem.F32:
		setNumbers[float32](b, at)
	case mem.F64:
		setNumbers[float64](b, at)
	case mem.F16:
		set(b, func(i int) mem.Float16 { return mem.ToFloat16(float32(at(i))) })
	case mem.BF16:
		set(b, func(i int) mem.BFloat16 { return mem.ToBFloat16(float32(at(i))) })
	case mem.C64:
		set(b, func(i int) complex64 { return complex(float32(at(i)), 0) })
	case mem.C128:
		set(b, func(i int) complex128 { return complex(float64(at(i)), 0) })
	case mem.Bool:
		set(b, func(i int) bool { return at(i)%2 == 0 })
	default:
		return fmt.Errorf("element type %v: want a number or bool", b.Type())
	}
	return nil
}

func setNumbers[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64](b mem.Buffer,
	at func(int) int) {
	set(b, func(i int) T { return T(at(i)) })
}

func set[T mem.Scalar](b mem.Buffer, at func(i int) T) {
	for i, s := 0, mem.Slice[T](b); i < len(s); i++ {
		s[i] = at(i)
	}
}

// reduced returns the reduction by op of the inputs of ranks 0 to n-1, by one call of the portable
// kernel, in the order of the ranks.
func (p *patterns) reduced(op mem.Op, n int) (mem.Buffer, error) {
	b, err := mem.Host.Alloc(p.t, period)
	if err != nil {
		return b, err
	}
	kernel := op
	if op == mem.Avg {
		kernel = mem.Sum
	}
	if err := mem.ReduceAll(kernel, b, p.by[:n]...); err != nil {
		return b, err
	}
	if op == mem.Avg {
		err = mem.Divide(b, n)
	}
	return b, err
}

// tile fills b with repetitions of pattern from index 0 on.
func tile(b, pattern mem.Buffer) {
	to, from := b.HostSlice(), pattern.HostSlice()
	for done := copy(to, from); done < len(to); {
		// Doubling keeps the phase while done is a multiple of the period.
		done += copy(to[done:], to[:done])
	}
}

// A part is a stretch of a result and its expected value: repetitions of pattern from index phase
// on.
type part struct {
	got     mem.Buffer
	pattern mem.Buffer
	phase   int
}

// verify returns the index of the first wrong byte of p, or -1.
func (p part) verify() int {
	got, want := p.got.HostSlice(), p.pattern.HostSlice()
	at := p.phase % period * p.got.Type().Size()
	for done := 0; done < len(got); at = 0 {
		n := min(len(got)-done, len(want)-at)
		if !bytes.Equal(got[done:done+n], want[at:at+n]) {
			for i := range n {
				if got[done+i] != want[at+i] {
					return done + i
				}
			}
		}
		done += n
	}
	return -1
}
