package randprog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"gompi/internal/mem"
)

// A value is an element in the model: whole numbers that every type used here holds exactly, so
// that neither order nor rounding counts.
type value struct {
	a int64
	b int64 // imaginary part, or index of a pair
}

// mix scatters bits (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func isComplex(t mem.Type) bool { return t == mem.C64 || t == mem.C128 }
func isPair(t mem.Type) bool    { return t >= mem.I32Loc && t <= mem.F64Loc }

// valueOf returns element i of the vector that a rank contributes to the collective of seed, fit
// for op.
func valueOf(seed uint64, t mem.Type, op mem.Op, rank, i int) value {
	h := mix(mix(seed+uint64(rank)*0x51_7cc1b7) ^ uint64(i))
	small := int64(h % 13)
	switch {
	case t == mem.Bool:
		return value{a: int64(h & 1)}
	case isPair(t): // many equal ones, of which the lowest index wins
		return value{int64(h%3) - 1, int64(h >> 8 % 50)}
	case op == mem.Custom, t.IsInteger() &&
		(op == mem.NoOp || op == mem.Sum || op == mem.Prod || op >= mem.BAnd && op <= mem.BXor):
		return value{a: int64(h)} // all bits count
	case isComplex(t):
		return value{int64(h % 3), int64(h >> 8 % 3)}
	case op == mem.Prod: // powers of two
		return value{a: [...]int64{-2, -1, 1, 2}[h&3]}
	case t.IsInteger() && t >= mem.U8:
		return value{a: small}
	}
	return value{a: small - 6}
}

// combine returns x op y. Avg adds: average divides in the end.
func combine(op mem.Op, t mem.Type, x, y value) value {
	switch op {
	case mem.Sum, mem.Avg:
		return value{x.a + y.a, x.b + y.b}
	case mem.Prod:
		return value{x.a*y.a - x.b*y.b, x.a*y.b + x.b*y.a}
	case mem.Min:
		return value{a: min(x.a, y.a)}
	case mem.Max:
		return value{a: max(x.a, y.a)}
	case mem.LAnd:
		return truth(x.a != 0 && y.a != 0)
	case mem.LOr:
		return truth(x.a != 0 || y.a != 0)
	case mem.LXor:
		return truth((x.a != 0) != (y.a != 0))
	case mem.BAnd:
		return value{a: x.a & y.a}
	case mem.BOr:
		return value{a: x.a | y.a}
	case mem.BXor:
		return value{a: x.a ^ y.a}
	case mem.MinLoc, mem.MaxLoc:
		if x.a == y.a {
			return value{x.a, min(x.b, y.b)}
		}
		if (x.a < y.a) == (op == mem.MinLoc) {
			return x
		}
		return y
	case mem.Custom:
		return value{a: int64(compose(uint16(x.a), uint16(y.a)))}
	}
	panic(fmt.Sprintf("no model for %v of %v", op, t))
}

func truth(b bool) value {
	if b {
		return value{a: 1}
	}
	return value{}
}

// compose is an operator that is associative and does not commute: x -> m*x+k modulo
// 256, of which m is the high byte of a number, f first, then g.
func compose(f, g uint16) uint16 {
	m, k := f>>8, f&0xff
	return m*(g>>8)&0xff<<8 | (k*(g>>8)+g&0xff)&0xff
}

// put stores v as an element of type t at the beginning of b, divided by n.
func put(b []byte, t mem.Type, v value, n int) {
	le := binary.LittleEndian // the order of the processors gompi runs on
	// float32 of it is rounded once: 53 bits suffice
	quotient := func(a int64) float64 { return float64(a) / float64(n) }
	switch t {
	case mem.I8, mem.U8, mem.Bool:
		b[0] = byte(v.a)
	case mem.I16, mem.U16:
		le.PutUint16(b, uint16(v.a))
	case mem.I32, mem.U32:
		le.PutUint32(b, uint32(v.a))
	case mem.I64, mem.U64:
		le.PutUint64(b, uint64(v.a))
	case mem.F16:
		le.PutUint16(b, mem.ToFloat16(float32(quotient(v.a))).Bits)
	case mem.BF16:
		le.PutUint16(b, mem.ToBFloat16(float32(quotient(v.a))).Bits)
	case mem.F32:
		le.PutUint32(b, math.Float32bits(float32(quotient(v.a))))
	case mem.F64:
		le.PutUint64(b, math.Float64bits(quotient(v.a)))
	case mem.C64:
		le.PutUint32(b, math.Float32bits(float32(quotient(v.a))))
		le.PutUint32(b[4:], math.Float32bits(float32(quotient(v.b))))
	case mem.C128:
		le.PutUint64(b, math.Float64bits(quotient(v.a)))
		le.PutUint64(b[8:], math.Float64bits(quotient(v.b)))
	case mem.I32Loc, mem.F32Loc:
		put(b, map[mem.Type]mem.Type{mem.I32Loc: mem.I32, mem.F32Loc: mem.F32}[t], v, 1)
		le.PutUint32(b[4:], 0) // padding
		le.PutUint64(b[8:], uint64(v.b))
	case mem.I64Loc, mem.F64Loc:
		put(b, map[mem.Type]mem.Type{mem.I64Loc: mem.I64, mem.F64Loc: mem.F64}[t], v, 1)
		le.PutUint64(b[8:], uint64(v.b))
	}
}

// encode returns the bytes of n elements, each divided by by.
func encode(t mem.Type, n, by int, at func(i int) value) []byte {
	size := t.Size()
	b := make([]byte, n*size)
	for i := range n {
		put(b[i*size:], t, at(i), by)
	}
	return b
}

// differ names the first element of got that differs from want, nil if none does.
func differ(what string, t mem.Type, got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	size := t.Size()
	for i := 0; i+size <= len(want); i += size {
		x, y := canonical(t, got[i:i+size]), canonical(t, want[i:i+size])
		if !bytes.Equal(x, y) {
			return fmt.Errorf("%s: element %d of %d (%v) has the bytes %x, want %x", what, i/size,
				len(want)/size, t, x, y)
		}
	}
	return nil
}

// canonical returns an element without parts that do not count: padding, and the sign of a zero
// that a complex product gives.
func canonical(t mem.Type, element []byte) []byte {
	le, b := binary.LittleEndian, bytes.Clone(element)
	switch t {
	case mem.I32Loc, mem.F32Loc:
		clear(b[4:8])
	case mem.C64:
		for part := b; len(part) > 0; part = part[4:] {
			if math.Float32frombits(le.Uint32(part)) == 0 {
				clear(part[:4])
			}
		}
	case mem.C128:
		for part := b; len(part) > 0; part = part[8:] {
			if math.Float64frombits(le.Uint64(part)) == 0 {
				clear(part[:8])
			}
		}
	}
	return b
}
