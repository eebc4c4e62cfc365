package mem

import (
	"math"
	"unsafe"
)

// Float32 returns the value of h, exactly. A NaN becomes quiet.
func (h Float16) Float32() float32 {
	// Shifted into place, h's exponent is the exponent of a float32 without the difference of the
	// two biases, 127-15. Multiplying by 2^112 adds the difference, and normalises subnormal
	// numbers on the way.
	f := math.Float32frombits(uint32(h.Bits&0x7fff)<<13) * 0x1p112
	b := math.Float32bits(f) | uint32(h.Bits&0x8000)<<16
	switch {
	case h.Bits&0x7fff > 0x7c00:
		b |= 0x7fc00000 // a quiet NaN
	case h.Bits&0x7c00 == 0x7c00:
		b |= 0x7f800000
	}
	return math.Float32frombits(b)
}

// ToFloat16 rounds f to the nearest Float16, ties to even. Magnitudes from 65520 up become
// infinite; a NaN stays a (quiet) NaN.
func ToFloat16(f float32) Float16 {
	const (
		smallestNormal = 0x38800000 // 2^-14
		overflow       = 0x477ff000 // 65520, halfway between the largest and infinity
		infinity       = 0x7f800000
		rebias         = (127 - 15) << 23
	)
	b := math.Float32bits(f)
	sign := uint16(b>>16) & 0x8000
	b &= 0x7fffffff
	switch {
	case b-smallestNormal < overflow-smallestNormal: // normal, the common case
		b += 0xfff + b>>13&1
		return Float16{sign | uint16((b-rebias)>>13)}
	case b < smallestNormal:
		// 0.5 as a float32 counts in steps of 2^-24, Float16's smallest number: the addition
		// rounds, and leaves the number of steps in the low bits.
		return Float16{sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5))}
	case b > infinity:
		return Float16{sign | 0x7e00 | uint16(b>>13)&0x1ff}
	}
	return Float16{sign | 0x7c00}
}

// Float32 returns the value of h, exactly.
func (h BFloat16) Float32() float32 { return math.Float32frombits(uint32(h.Bits) << 16) }

// ToBFloat16 rounds f to the nearest BFloat16, ties to even. Values that exceed the largest number
// by half a step become infinite; a NaN stays a (quiet) NaN.
func ToBFloat16(f float32) BFloat16 {
	b := math.Float32bits(f)
	if f != f {
		return BFloat16{uint16(b>>16) | 0x40}
	}
	return BFloat16{uint16((b + 0x7fff + b>>16&1) >> 16)}
}

// halfBlock is the number of 16-bit floats combined at a time: two blocks of float32 fit on a small
// stack and well into the first-level cache.
const halfBlock = 512

const (
	// vectorHalves is the number of 16-bit floats in one step of a vector conversion.
	vectorHalves = 32
	// stretchHalves is the number of 16-bit floats converted in one call.
	stretchHalves = stretch / 4
)

// halfKernel returns the kernel of op for t, F16 or BF16.
func halfKernel(op Op, t Type) kernel {
	return func(dst, a, b unsafe.Pointer, n int) {
		k := &hostKinds[t]
		srcs := [2]Buffer{{kind: k, host: a, n: n}, {kind: k, host: b, n: n}}
		foldHalf(op, Buffer{kind: k, host: dst, n: n}, srcs[:], 0)
	}
}

// foldHalf stores srcs[0] op srcs[1] op ... into dst, from element from on. It computes in float32
// and rounds once, so that the error does not grow with the number of operands, and no sum overflows
// whose average can be represented. dst may be any of srcs: a block is stored when all blocks of
// operands have been read.
func foldHalf(op Op, dst Buffer, srcs []Buffer, from int) {
	var acc, in [halfBlock]float32
	for i := from; i < dst.n; i += halfBlock {
		m := min(halfBlock, dst.n-i)
		widen(dst.kind.typ, acc[:m], unsafe.Add(srcs[0].host, 2*i))
		for _, src := range srcs[1:] {
			widen(dst.kind.typ, in[:m], unsafe.Add(src.host, 2*i))
			combineFloat32(op.Base(), acc[:m], in[:m])
		}
		by := float32(1)
		if op == Avg {
			by = float32(len(srcs))
		}
		narrow(dst.kind.typ, unsafe.Add(dst.host, 2*i), acc[:m], by)
	}
}

// combineFloat32 stores acc op in into acc. It calls the kernels directly, not through the table:
// an indirect call would move foldHalf's blocks to the heap.
func combineFloat32(op Op, acc, in []float32) {
	d, s := unsafe.Pointer(unsafe.SliceData(acc)), unsafe.Pointer(unsafe.SliceData(in))
	switch op {
	case Sum:
		sum[float32](d, d, s, len(acc))
	case Prod:
		prod[float32](d, d, s, len(acc))
	case Min:
		minimum[float32](d, d, s, len(acc))
	case Max:
		maximum[float32](d, d, s, len(acc))
	}
}

func divideHalf(t Type, p unsafe.Pointer, n int, by float32) {
	var x [halfBlock]float32
	for i := 0; i < n; i += halfBlock {
		block := x[:min(halfBlock, n-i)]
		widen(t, block, unsafe.Add(p, 2*i))
		narrow(t, unsafe.Add(p, 2*i), block, by)
	}
}

// A Half is a float of 16 bits.
type Half interface{ Float16 | BFloat16 }

// Widen stores the values of src, as Float32 returns them, in dst, no shorter and not overlapping.
func Widen[T Half](dst []float32, src []T) {
	widen(TypeOf[T](), part(dst, len(src)), unsafe.Pointer(unsafe.SliceData(src)))
}

// Narrow divides the numbers of src by by and stores the quotients in dst, each rounded once more,
// as ToFloat16 and ToBFloat16 do. dst is not shorter than src and does not overlap src.
func Narrow[T Half](dst []T, src []float32, by float32) {
	narrow(TypeOf[T](), unsafe.Pointer(unsafe.SliceData(part(dst, len(src)))), src, by)
}

// part returns the first n elements of s. It panics if s has fewer, whatever its capacity.
func part[T any](s []T, n int) []T { return s[:len(s):len(s)][:n] }

// widen stores the values of len(dst) elements of t, F16 or BF16, at src. With AVX2 6,553,600
// elements of F16 take 1.2 ms instead of 7.3 (BenchmarkConvert, AMD EPYC).
func widen(t Type, dst []float32, src unsafe.Pointer) {
	done := 0
	if vectors[Sum][t] != noLoop {
		done = len(dst) - len(dst)%vectorHalves
		for at := 0; at < done; at += stretchHalves {
			widenVectors(t, &dst[at], unsafe.Add(src, 2*at), min(stretchHalves, done-at))
		}
	}
	switch {
	case done == len(dst):
	case t == BF16:
		for i, h := range unsafe.Slice((*BFloat16)(src), len(dst))[done:] {
			dst[done+i] = h.Float32()
		}
	default:
		for i, h := range unsafe.Slice((*Float16)(src), len(dst))[done:] {
			dst[done+i] = h.Float32()
		}
	}
}

// narrow divides src by by and rounds the quotients to elements of t, F16 or BF16, at dst. With
// AVX2 6,553,600 elements of F16 take 1.3 ms instead of 13.4 (BenchmarkConvert, AMD EPYC).
func narrow(t Type, dst unsafe.Pointer, src []float32, by float32) {
	done := 0
	if vectors[Sum][t] != noLoop {
		done = len(src) - len(src)%vectorHalves
		for at := 0; at < done; at += stretchHalves {
			narrowVectors(t, unsafe.Add(dst, 2*at), &src[at], min(stretchHalves, done-at), by)
		}
	}
	switch {
	case done == len(src):
	case t == BF16:
		h := unsafe.Slice((*BFloat16)(dst), len(src))[done:]
		for i, f := range src[done:] {
			h[i] = ToBFloat16(f / by)
		}
	default:
		h := unsafe.Slice((*Float16)(dst), len(src))[done:]
		for i, f := range src[done:] {
			h[i] = ToFloat16(f / by)
		}
	}
}
