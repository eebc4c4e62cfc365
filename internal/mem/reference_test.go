package mem

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
)

// The reference computes one element at a time, from its bytes, in exact
// arithmetic that is rounded at the end. It shares no code with the kernels.

// A format is a binary floating-point format of p bits of precision and e bits
// of exponent.
type format struct{ p, e int }

var formats = map[Type]format{
	F16: {11, 5}, BF16: {8, 8}, F32: {24, 8}, F64: {53, 11},
	C64: {24, 8}, C128: {53, 11},
	F32Loc: {24, 8}, F64Loc: {53, 11},
}

func (f format) bias() int { return 1<<(f.e-1) - 1 }

// decode returns the value of the bits v.
func (f format) decode(v uint64) float64 {
	mant := v & (1<<(f.p-1) - 1)
	exp := int(v>>(f.p-1)) & (1<<f.e - 1)
	sign := 1.0
	if v>>(f.p-1+f.e)&1 == 1 {
		sign = -1
	}
	switch {
	case exp == 1<<f.e-1 && mant != 0:
		return math.NaN()
	case exp == 1<<f.e-1:
		return math.Inf(int(sign))
	case exp == 0:
		return math.Copysign(math.Ldexp(float64(mant), 2-f.bias()-f.p), sign)
	}
	return sign * math.Ldexp(float64(mant|1<<(f.p-1)), exp-f.bias()-f.p+1)
}

// encode rounds x to nearest even and returns its bits.
func (f format) encode(x *big.Float) uint64 {
	var sign uint64
	if x.Signbit() {
		sign = 1 << (f.p - 1 + f.e)
	}
	if x.Sign() == 0 {
		return sign
	}
	// The exponent of the last place kept: of p bits, and not below the exponent of the subnormal
	// numbers.
	ulp := max(x.MantExp(nil)-f.p, 2-f.bias()-f.p)
	units := new(big.Float).SetMantExp(new(big.Float).Abs(x), -ulp)
	whole, _ := units.Int(nil)
	rest := new(big.Float).Sub(units, new(big.Float).SetPrec(4000).SetInt(whole))
	if c := rest.Cmp(big.NewFloat(0.5)); c > 0 || c == 0 && whole.Bit(0) == 1 {
		whole.Add(whole, big.NewInt(1))
	}
	// Number k of the non-negative floats has the bits k: count them.
	k := new(big.Int).Lsh(big.NewInt(int64(ulp+f.bias()+f.p-2)), uint(f.p-1))
	k.Add(k, whole)
	if k.Cmp(new(big.Int).SetUint64(f.infinity())) > 0 {
		return sign | f.infinity()
	}
	return sign | k.Uint64()
}

func (f format) infinity() uint64 { return (1<<f.e - 1) << (f.p - 1) }

func (f format) nan() uint64 { return (1<<(f.e+1) - 1) << (f.p - 2) }

// combine returns a op b for Sum, Prod, Min and Max.
func (f format) combine(op Op, a, b uint64) uint64 {
	x, y := f.decode(a), f.decode(b)
	if math.IsNaN(x) || math.IsNaN(y) {
		return f.nan()
	}
	switch op {
	case Min, Max:
		less := x < y || x == y && math.Signbit(x) && !math.Signbit(y)
		if less == (op == Min) {
			return a
		}
		return b
	}
	if math.IsInf(x, 0) || math.IsInf(y, 0) {
		z := x + y
		if op == Prod {
			z = x * y
		}
		switch {
		case math.IsNaN(z):
			return f.nan()
		case z < 0:
			return f.infinity() | 1<<(f.p-1+f.e)
		}
		return f.infinity()
	}
	z := new(big.Float).SetPrec(4000)
	if op == Prod {
		return f.encode(z.Mul(big.NewFloat(x), big.NewFloat(y)))
	}
	return f.encode(z.Add(big.NewFloat(x), big.NewFloat(y)))
}

// refCombine returns a op b for the element types, given and returned as bytes.
func refCombine(op Op, t Type, a, b []byte) []byte {
	x, y := refWord(a), refWord(b)
	switch t {
	case F16, BF16, F32, F64:
		return refBytes(formats[t].combine(op, x, y), len(a))
	case C64, C128:
		return refComplex(op, formats[t], a, b)
	case I32Loc, I64Loc, F32Loc, F64Loc:
		return refLoc(op, t, a, b)
	}
	if op == Min || op == Max {
		less := refInt(t, a).Cmp(refInt(t, b)) < 0
		if less == (op == Min) {
			return a
		}
		return b
	}
	z := new(big.Int)
	p, q := refInt(t, a), refInt(t, b)
	switch op {
	case Sum:
		z.Add(p, q)
	case Prod:
		z.Mul(p, q)
	case BAnd:
		z.And(p, q)
	case BOr:
		z.Or(p, q)
	case BXor:
		z.Xor(p, q)
	case LAnd:
		z.SetInt64(int64(p.CmpAbs(z) * q.CmpAbs(z)))
	case LOr:
		z.SetInt64(int64(max(p.CmpAbs(z), q.CmpAbs(z))))
	case LXor:
		z.SetInt64(int64((p.CmpAbs(z) + q.CmpAbs(z)) % 2))
	}
	z.Mod(z, new(big.Int).Lsh(big.NewInt(1), uint(8*len(a))))
	return refBytes(z.Uint64(), len(a))
}

// refChain combines operands one after the other, and for Avg divides the sum. 16-bit
// floats are combined, and divided, in float32 and rounded once.
func refChain(op Op, t Type, operands []Buffer) (all []byte) {
	f, half := formats[t]
	half = half && t.Size() == 2
	single, size := formats[F32], t.Size()
	for i := range operands[0].n {
		acc := slice(operands[0], i)
		if half {
			acc = refBytes(single.encoded(f.decode(refWord(acc))), 4)
		}
		for _, b := range operands[1:] {
			if e := slice(b, i); half {
				acc = refCombine(op.Base(), F32, acc, refBytes(single.encoded(f.decode(refWord(e))), 4))
			} else {
				acc = refCombine(op.Base(), t, acc, e)
			}
		}
		switch {
		case op == Avg && half:
			acc = refQuotient(F32, acc, len(operands))
		case op == Avg:
			acc = refQuotient(t, acc, len(operands))
		}
		if half {
			acc = refBytes(f.encoded(single.decode(refWord(acc))), size)
		}
		all = append(all, acc...)
	}
	return all
}

// refDivided is refQuotient, for 16-bit floats too.
func refDivided(t Type, e []byte, n int) []byte {
	f, single := formats[t], formats[F32]
	if t.Size() > 2 {
		return refQuotient(t, e, n)
	}
	wide := refQuotient(F32, refBytes(single.encoded(f.decode(refWord(e))), 4), n)
	return refBytes(f.encoded(single.decode(refWord(wide))), len(e))
}

// refQuotient returns the number e, which is no integer, divided by n.
func refQuotient(t Type, e []byte, n int) []byte {
	if t == C64 || t == C128 {
		part, h := map[Type]Type{C64: F32, C128: F64}[t], len(e)/2
		return append(refQuotient(part, e[:h], n), refQuotient(part, e[h:], n)...)
	}
	f := formats[t]
	x := f.decode(refWord(e))
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return refBytes(f.encoded(x), len(e))
	}
	z := new(big.Float).SetPrec(4000)
	return refBytes(f.encode(z.Quo(big.NewFloat(x), big.NewFloat(float64(n)))), len(e))
}

// encoded is encode of any number.
func (f format) encoded(x float64) uint64 {
	switch {
	case math.IsNaN(x):
		return f.nan()
	case math.IsInf(x, 1):
		return f.infinity()
	case math.IsInf(x, -1):
		return f.infinity() | 1<<(f.p-1+f.e)
	}
	return f.encode(big.NewFloat(x))
}

func refComplex(op Op, f format, a, b []byte) []byte {
	h := len(a) / 2
	ar, ai, br, bi := refWord(a[:h]), refWord(a[h:]), refWord(b[:h]), refWord(b[h:])
	if op == Sum {
		return append(refBytes(f.combine(Sum, ar, br), h), refBytes(f.combine(Sum, ai, bi), h)...)
	}
	minus := uint64(1) << (8*h - 1)
	re := f.combine(Sum, f.combine(Prod, ar, br), f.combine(Prod, ai, bi)^minus)
	im := f.combine(Sum, f.combine(Prod, ar, bi), f.combine(Prod, ai, br))
	return append(refBytes(re, h), refBytes(im, h)...)
}

func refLoc(op Op, t Type, a, b []byte) []byte {
	key := func(e []byte) (nan int, value float64, integer, index int64) {
		index = int64(binary.NativeEndian.Uint64(e[8:]))
		switch t {
		case I32Loc:
			integer = int64(int32(binary.NativeEndian.Uint32(e)))
		case I64Loc:
			integer = int64(binary.NativeEndian.Uint64(e))
		case F32Loc:
			value = formats[t].decode(uint64(binary.NativeEndian.Uint32(e)))
		case F64Loc:
			value = formats[t].decode(binary.NativeEndian.Uint64(e))
		}
		if math.IsNaN(value) {
			return 0, 0, 0, index
		}
		if op == MaxLoc {
			value, integer = -value, ^integer
		}
		return 1, value, integer, index
	}
	return slices.MinFunc([][]byte{a, b}, func(a, b []byte) int {
		an, av, ai, ax := key(a)
		bn, bv, bi, bx := key(b)
		return cmp.Or(cmp.Compare(an, bn), cmp.Compare(av, bv), cmp.Compare(ai, bi), cmp.Compare(ax, bx))
	})
}

func refInt(t Type, e []byte) *big.Int {
	z := new(big.Int).SetUint64(refWord(e))
	if t <= I64 && z.Bit(8*len(e)-1) == 1 {
		z.Sub(z, new(big.Int).Lsh(big.NewInt(1), uint(8*len(e))))
	}
	return z
}

// refWord returns the bits of an element of up to 8 bytes.
func refWord(e []byte) uint64 {
	var w [8]byte
	if len(e) > 8 {
		e = e[:8]
	}
	copy(w[:], e)
	return binary.LittleEndian.Uint64(w[:])
}

func refBytes(w uint64, n int) []byte { return binary.LittleEndian.AppendUint64(nil, w)[:n] }

// refSame reports whether two elements are the same bits, or NaN both.
func refSame(t Type, a, b []byte) bool {
	f, ok := formats[t]
	switch {
	case t == I32Loc || t == F32Loc:
		return slices.Equal(a[:4], b[:4]) && slices.Equal(a[8:], b[8:]) // between them is padding
	case !ok || slices.Equal(a, b):
		return slices.Equal(a, b)
	case t == C64 || t == C128:
		part := map[Type]Type{C64: F32, C128: F64}[t]
		h := len(a) / 2
		return refSame(part, a[:h], b[:h]) && refSame(part, a[h:], b[h:])
	case t == F64Loc:
		return false // a pair is copied, whatever is in it
	}
	return math.IsNaN(f.decode(refWord(a))) && math.IsNaN(f.decode(refWord(b)))
}

// refOperand returns n elements of t: random bits, ordinary numbers and values
// at the edges of the type, so that NaNs, overflows and ties all happen.
func refOperand(r *rand.Rand, t Type, n int) Buffer {
	b, err := Host.Alloc(t, n)
	if err != nil {
		panic(err)
	}
	raw, size := b.HostSlice(), t.Size()
	for i := range n {
		refElement(r, t, raw[i*size:][:size])
	}
	return b
}

func refElement(r *rand.Rand, t Type, e []byte) {
	switch t {
	case Bool:
		e[0] = byte(r.IntN(2))
	case C64, C128:
		part := map[Type]Type{C64: F32, C128: F64}[t]
		refElement(r, part, e[:len(e)/2])
		refElement(r, part, e[len(e)/2:])
	case I32Loc, I64Loc, F32Loc, F64Loc:
		part := map[Type]Type{I32Loc: I32, I64Loc: I64, F32Loc: F32, F64Loc: F64}[t]
		refElement(r, part, e[:part.Size()])
		binary.NativeEndian.PutUint64(e[8:], uint64(r.IntN(5)-2))
	default:
		copy(e, refBytes(refBits(r, t), len(e)))
	}
}

func refBits(r *rand.Rand, t Type) uint64 {
	if f, ok := formats[t]; ok {
		sign := uint64(r.IntN(2)) << (f.p - 1 + f.e)
		edges := []uint64{0, 1, 1<<(f.p-1) - 1, 1 << (f.p - 1), f.infinity() - 1, f.infinity(), f.nan()}
		switch r.IntN(4) {
		case 0:
			return sign | edges[r.IntN(len(edges))]
		case 1:
			return r.Uint64()
		}
		// A magnitude near 1, with all bits in use.
		return sign | uint64(f.bias()-4+r.IntN(8))<<(f.p-1) | r.Uint64()&(1<<(f.p-1)-1)
	}
	edges := []uint64{0, 0, 1, 2, 3, 1<<(8*t.Size()-1) - 1, 1 << (8*t.Size() - 1), math.MaxUint64}
	if r.IntN(2) == 0 {
		return edges[r.IntN(len(edges))]
	}
	return r.Uint64()
}
