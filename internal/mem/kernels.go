package mem

import "unsafe"

// A kernel stores a[i] op b[i] into dst[i] for n elements of its type; the kernel of Avg halves the
// sum. dst may be a or b, else it overlaps neither.
type kernel func(dst, a, b unsafe.Pointer, n int)

var (
	// vectors holds the vector loops of this processor.
	vectors = vectorLoops()
	// kernels has the host kernel of every operator for its types. Both tables are only read.
	kernels = newKernels(vectors)
)

// newKernels instantiates the operators, each defined once in kernel_*.go, for their types, and
// puts the vector loops before the Go loops.
func newKernels(v loops) (k [numOps][numTypes]kernel) {
	k[Sum] = [numTypes]kernel{
		I8: sum[int8], I16: sum[int16], I32: sum[int32], I64: sum[int64],
		U8: sum[uint8], U16: sum[uint16], U32: sum[uint32], U64: sum[uint64],
		F32: sum[float32], F64: sum[float64], C64: sum[complex64], C128: sum[complex128],
		F16: halfKernel(Sum, F16), BF16: halfKernel(Sum, BF16),
	}
	k[Prod] = [numTypes]kernel{
		I8: prod[int8], I16: prod[int16], I32: prod[int32], I64: prod[int64],
		U8: prod[uint8], U16: prod[uint16], U32: prod[uint32], U64: prod[uint64],
		F32: prod[float32], F64: prod[float64], C64: prodComplex[float32], C128: prodComplex[float64],
		F16: halfKernel(Prod, F16), BF16: halfKernel(Prod, BF16),
	}
	k[Min] = [numTypes]kernel{
		I8: minimum[int8], I16: minimum[int16], I32: minimum[int32], I64: minimum[int64],
		U8: minimum[uint8], U16: minimum[uint16], U32: minimum[uint32], U64: minimum[uint64],
		F32: minimum[float32], F64: minimum[float64],
		F16: halfKernel(Min, F16), BF16: halfKernel(Min, BF16),
	}
	k[Max] = [numTypes]kernel{
		I8: maximum[int8], I16: maximum[int16], I32: maximum[int32], I64: maximum[int64],
		U8: maximum[uint8], U16: maximum[uint16], U32: maximum[uint32], U64: maximum[uint64],
		F32: maximum[float32], F64: maximum[float64],
		F16: halfKernel(Max, F16), BF16: halfKernel(Max, BF16),
	}
	k[LAnd] = integers(land[uint8], land[uint16], land[uint32], land[uint64])
	k[LOr] = integers(lor[uint8], lor[uint16], lor[uint32], lor[uint64])
	k[LXor] = integers(lxor[uint8], lxor[uint16], lxor[uint32], lxor[uint64])
	k[BAnd] = bitwise(band[uint64], band[uint8])
	k[BOr] = bitwise(bor[uint64], bor[uint8])
	k[BXor] = bitwise(bxor[uint64], bxor[uint8])
	// A bool is a byte that holds 0 or 1: logical and bitwise operators are the same.
	k[LAnd][Bool], k[BAnd][Bool] = k[BAnd][U8], k[BAnd][U8]
	k[LOr][Bool], k[BOr][Bool] = k[BOr][U8], k[BOr][U8]
	k[LXor][Bool], k[BXor][Bool] = k[BXor][U8], k[BXor][U8]
	k[MinLoc] = [numTypes]kernel{
		I32Loc: minLoc[int32], I64Loc: minLoc[int64], F32Loc: minLoc[float32], F64Loc: minLoc[float64],
	}
	k[Avg][F16], k[Avg][BF16] = halfKernel(Avg, F16), halfKernel(Avg, BF16)
	k[MaxLoc] = [numTypes]kernel{
		I32Loc: maxLoc[int32], I64Loc: maxLoc[int64], F32Loc: maxLoc[float32], F64Loc: maxLoc[float64],
	}
	for op := range numOps {
		for t := range numTypes {
			if op == Avg && k[op][t] == nil && k[Sum][t] != nil && !t.IsInteger() {
				k[op][t] = average(t, k[Sum][t]) // by now the vector loop
			}
			if l := v[op][t]; l != noLoop {
				k[op][t] = l.kernel(t.Size(), k[op][t])
			}
		}
	}
	return k
}

// average returns the kernel of Avg for t, given the kernel of Sum.
func average(t Type, sum kernel) kernel {
	return func(dst, a, b unsafe.Pointer, n int) {
		sum(dst, a, b, n)
		divide(t, dst, n, 2)
	}
}

// bitwise returns the kernels of the integer types for a bitwise operator, given its kernels for
// words and for bytes.
func bitwise(k64, k8 kernel) [numTypes]kernel {
	return integers(byWords(1, k64, k8), byWords(2, k64, k8), byWords(4, k64, k8), k64)
}

// integers returns the integers' kernels by size: logical and bitwise operators see no sign.
func integers(k8, k16, k32, k64 kernel) [numTypes]kernel {
	return [numTypes]kernel{
		I8: k8, I16: k16, I32: k32, I64: k64,
		U8: k8, U16: k16, U32: k32, U64: k64,
	}
}
