package core_test

import (
	"bytes"
	"math"
	"math/rand/v2"

	"gompi/internal/mem"
)

// floats returns the elements of b, 16-bit floats, as float32.
func floats(b mem.Buffer) []float32 {
	f := make([]float32, b.Len())
	for i := range f {
		if b.Type() == mem.F16 {
			f[i] = mem.Slice[mem.Float16](b)[i].Float32()
		} else {
			f[i] = mem.Slice[mem.BFloat16](b)[i].Float32()
		}
	}
	return f
}

// setFloats rounds f to the elements of b, 16-bit floats.
func setFloats(b mem.Buffer, f []float32) {
	for i, x := range f {
		if b.Type() == mem.F16 {
			mem.Slice[mem.Float16](b)[i] = mem.ToFloat16(x)
		} else {
			mem.Slice[mem.BFloat16](b)[i] = mem.ToBFloat16(x)
		}
	}
}

// parts returns the memory of b as a []T: the parts of complex numbers, or the
// floats themselves.
func parts[T float32 | float64](b mem.Buffer) []T {
	t := mem.TypeOf[T]()
	return mem.Slice[T](mem.HostBytes(t, b.Size()/t.Size(), b.HostSlice()))
}

// operand returns n random elements: integers of any bits, floats that are NaN
// or infinite now and then, pairs with ties.
func operand(r *rand.Rand, t mem.Type, n int) mem.Buffer {
	b, err := mem.Host.Alloc(t, n)
	if err != nil {
		panic(err) // the lengths here are small
	}
	raw := b.HostSlice()
	if t <= mem.U64 || t == mem.Bool {
		rand.NewChaCha8([32]byte{byte(r.Uint32())}).Read(raw)
	}
	switch t {
	case mem.Bool:
		for i := range raw {
			raw[i] &= 1
		}
	case mem.F16, mem.BF16:
		f := make([]float32, n)
		fill(r, f)
		setFloats(b, f)
	case mem.F32, mem.C64:
		fill(r, parts[float32](b))
	case mem.F64, mem.C128:
		fill(r, parts[float64](b))
	case mem.I32Loc:
		fillLoc(r, mem.Slice[mem.Loc[int32]](b))
	case mem.I64Loc:
		fillLoc(r, mem.Slice[mem.Loc[int64]](b))
	case mem.F32Loc:
		fillLoc(r, mem.Slice[mem.Loc[float32]](b))
	case mem.F64Loc:
		fillLoc(r, mem.Slice[mem.Loc[float64]](b))
	}
	return b
}

// fill stores numbers of magnitudes that add up with rounding, and every value
// with a rule of its own.
func fill[T float32 | float64](r *rand.Rand, s []T) {
	special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1e-40, 6e4, 3e38}
	for i := range s {
		if s[i] = T(r.NormFloat64() * math.Ldexp(1, r.IntN(12))); r.IntN(8) == 0 {
			s[i] = T(special[r.IntN(len(special))])
		}
	}
}

// fillLoc stores few different values, so that there are ties.
func fillLoc[T int32 | int64 | float32 | float64](r *rand.Rand, s []mem.Loc[T]) {
	for i := range s {
		s[i] = mem.Loc[T]{Value: T(r.IntN(3) - 1), Index: int64(r.IntN(100))}
	}
}

// sameNumbers reports whether two host buffers hold the same, where any NaN equals any
// other and the padding of pairs does not count.
func sameNumbers(a, b mem.Buffer) bool {
	if bytes.Equal(a.HostSlice(), b.HostSlice()) {
		return true
	}
	return bytes.Equal(canonical(a), canonical(b))
}

func canonical(b mem.Buffer) []byte {
	c := mem.HostBytes(b.Type(), b.Len(), bytes.Clone(b.HostSlice()))
	switch b.Type() {
	case mem.F16, mem.BF16:
		f := floats(c)
		canonicalNaN(f)
		setFloats(c, f)
	case mem.F32, mem.C64:
		canonicalNaN(parts[float32](c))
	case mem.F64, mem.C128:
		canonicalNaN(parts[float64](c))
	case mem.I32Loc, mem.F32Loc:
		for raw := c.HostSlice(); len(raw) > 0; raw = raw[16:] {
			clear(raw[4:8])
		}
	}
	return c.HostSlice()
}

func canonicalNaN[T float32 | float64](s []T) {
	for i, x := range s {
		if x != x {
			s[i] = T(math.NaN())
		}
	}
}
