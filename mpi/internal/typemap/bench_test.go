package typemap

import (
	"fmt"
	"runtime"
	"testing"
)

// shapes are layouts that programs send: a column of a matrix, a face of a box, particles picked
// by index, structs with a hole.
func shapes() map[string]*Type {
	index, lengths := make([]int, 1024), make([]int, 1024)
	for i := range index {
		index[i], lengths[i] = i*3+i%2, 1+i%3
	}
	hole := must(Struct([]int{1, 1}, []int{0, 8}, []*Type{Named("MPI_INT"), Named("MPI_DOUBLE")}))
	return map[string]*Type{
		"column4":   must(Vector(4096, 1, 8, Named("MPI_FLOAT"))),
		"column8":   must(Vector(4096, 1, 8, Named("MPI_DOUBLE"))),
		"column16":  must(Vector(4096, 1, 8, Named("MPI_C_DOUBLE_COMPLEX"))),
		"rows3":     must(Vector(1365, 3, 8, Named("MPI_DOUBLE"))),
		"face":      must(Subarray([]int{16, 64, 16}, []int{16, 64, 1}, []int{0, 0, 3}, OrderC, Named("MPI_DOUBLE"))),
		"index":     must(IndexedBlock(1, index, Named("MPI_DOUBLE"))),
		"lengths":   must(Indexed(lengths, index, Named("MPI_DOUBLE"))),
		"hole":      must(Contiguous(1024, hole)),
		"large":     must(Vector(32, 128, 256, Named("MPI_DOUBLE"))),
		"contigous": must(Contiguous(1024, Named("MPI_DOUBLE"))),
	}
}

func BenchmarkPack(b *testing.B) {
	for name, of := range shapes() {
		lo, extent := of.TrueExtent()
		a := newArena(-lo, extent)
		buf := make([]byte, of.Size())
		for _, unpack := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/unpack=%v", name, unpack), func(b *testing.B) {
				b.SetBytes(int64(of.Size()))
				for b.Loop() {
					if unpack {
						of.Unpack(a.base(), 1, buf)
					} else {
						of.Pack(buf, a.base(), 1)
					}
				}
			})
		}
		runtime.KeepAlive(a)
	}
}

func TestTransfersAllocateNothing(t *testing.T) {
	for name, of := range shapes() {
		lo, extent := of.TrueExtent()
		a := newArena(-lo, extent+of.Extent())
		buf := make([]byte, 2*of.Size())
		allocs := testing.AllocsPerRun(10, func() {
			of.PackAt(buf, a.base(), 2, 5)
			of.UnpackAt(a.base(), 2, buf, 5)
			of.Contiguous(2)
			of.Signature(2)
		})
		if allocs > 0 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
		runtime.KeepAlive(a)
	}
}
