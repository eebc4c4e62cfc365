package cudaops_test

import (
	"math"
	"testing"

	"gompi/cudaops"
	"gompi/internal/mem"
)

func TestMemoryOfNoElementsKeepsItsType(t *testing.T) {
	d := device(t)
	for name, alloc := range map[string]func(cudaops.Type, int) (cudaops.Buffer, error){
		"Alloc": d.Alloc, "AllocHost": d.AllocHost} {
		if b, err := alloc(mem.F32, 0); err != nil || b.Type() != mem.F32 || b.Len() != 0 {
			t.Errorf("%s of nothing: %d elements of %v, %v", name, b.Len(), b.Type(), err)
		}
		if _, err := alloc(mem.F32, -1); err == nil {
			t.Errorf("%s of -1 elements succeeds", name)
		}
	}
}

func TestMemoryLongerThanAnyIsRefused(t *testing.T) {
	for _, n := range []int{-1, math.MaxInt / 4, math.MaxInt} {
		if _, err := cudaops.At(nil, mem.F64, n); err == nil {
			t.Errorf("%d elements at an address are taken", n)
		}
	}
}
