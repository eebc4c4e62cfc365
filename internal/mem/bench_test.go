package mem

import (
	"fmt"
	"testing"
)

// BenchmarkReduce reports bytes of the result per second, with all operands in
// the first-level cache, in the others, and in memory.
func BenchmarkReduce(b *testing.B) {
	for _, c := range []struct {
		op Op
		t  Type
	}{
		{Sum, F32}, {Sum, F64}, {Sum, I32}, {Sum, U8}, {Sum, F16}, {Sum, BF16}, {Sum, C64}, {Avg, F32}, {Avg, BF16},
		{Prod, F32}, {Prod, C64},
		{Max, F32}, {Max, I32}, {LAnd, I32}, {BOr, U8}, {MinLoc, F32Loc},
	} {
		for _, size := range []int{8 << 10, 64 << 10, 1 << 20, 4 << 20, 64 << 20} {
			if c.t != F32 && size != 8<<10 {
				continue
			}
			b.Run(fmt.Sprintf("%v/%v/%dK", c.op, c.t, size>>10), func(b *testing.B) {
				benchmarkReduce(b, c.op, c.t, size)
			})
		}
	}
}

func benchmarkReduce(b *testing.B, op Op, t Type, size int) {
	x, y := benchmarkOperand(b, t, size), benchmarkOperand(b, t, size)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if err := Reduce(op, x, x, y); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReduceMany compares one pass over several operands with one each.
func BenchmarkReduceMany(b *testing.B) {
	const size, k = 16 << 20, 4
	for _, t := range []Type{F32, BF16, F16} {
		var srcs []Buffer
		for range k {
			srcs = append(srcs, benchmarkOperand(b, t, size))
		}
		dst := benchmarkOperand(b, t, size)
		b.Run(fmt.Sprintf("%v/once", t), func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				if err := ReduceAll(Sum, dst, srcs...); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%v/pairs", t), func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				acc := srcs[0]
				for _, src := range srcs[1:] {
					if err := Reduce(Sum, dst, acc, src); err != nil {
						b.Fatal(err)
					}
					acc = dst
				}
			}
		})
	}
}

func BenchmarkDivide(b *testing.B) {
	for _, t := range []Type{F32, F64, I32, U64, F16, BF16} {
		for _, n := range []int{4, 3} {
			b.Run(fmt.Sprintf("%v/%d", t, n), func(b *testing.B) {
				x := benchmarkOperand(b, t, 1<<20)
				b.SetBytes(1 << 20)
				for b.Loop() {
					if err := Divide(x, n); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkConvert reports bytes of float32 per second, in the second-level cache and in memory.
func BenchmarkConvert(b *testing.B) {
	for _, n := range []int{4 << 10, 6_553_600} {
		benchmarkConvert[Float16](b, n)
		benchmarkConvert[BFloat16](b, n)
	}
}

func benchmarkConvert[T Half](b *testing.B, n int) {
	wide, half := make([]float32, n), make([]T, n)
	for i := range wide {
		wide[i] = float32(i%1000) / 7
	}
	b.Run(fmt.Sprintf("narrow/%v/%d", TypeOf[T](), n), func(b *testing.B) {
		b.SetBytes(int64(4 * n))
		for b.Loop() {
			Narrow(half, wide, 2)
		}
	})
	b.Run(fmt.Sprintf("widen/%v/%d", TypeOf[T](), n), func(b *testing.B) {
		b.SetBytes(int64(4 * n))
		for b.Loop() {
			Widen(wide, half)
		}
	})
}

// benchmarkOperand returns size bytes of t whose elements are ordinary numbers.
func benchmarkOperand(b *testing.B, t Type, size int) Buffer {
	x, err := Host.Alloc(t, size/t.Size())
	if err != nil {
		b.Fatal(err)
	}
	for i := range x.HostSlice() {
		x.HostSlice()[i] = 0x3c // 0.0115 as float32, 0.0117 as bfloat16, 1.06 as float16
	}
	return x
}
