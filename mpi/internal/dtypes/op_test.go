package dtypes

import (
	"maps"
	"testing"

	"gompi/internal/mem"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/typemap"
)

// Every operator that is defined for a type combines it.
func TestAllOperatorsOnAllTypes(t *testing.T) {
	left := map[string]bool{} // to C
	was := abi.C
	defer func() { abi.C = was }()
	abi.C.Combine = func(op, datatype abi.Handle, in, inout abi.Addr, n int) bool {
		left[Registry.Find(datatype).Basic().Name] = true
		return true
	}
	for _, h := range abi.Handles() {
		o := Ops.Find(abi.Handle(h.ID))
		if o == nil {
			continue
		}
		for typ := range typemap.All() {
			b := typ.Basic()
			if !o.defined(b) {
				continue
			}
			in, inout := make([]byte, 4*64), make([]byte, 4*64)
			if err := ReduceLocal(addrOf(mem.Of(in)), addrOf(mem.Of(inout)), 3, Registry.Find(abi.Handle(b.ID)),
				o); err != nil {
				t.Errorf("%s of %s: %v", o.name, b.Name, err)
			}
		}
	}
	if !maps.Equal(left, combinedInC) {
		t.Errorf("left to C are %v: want %v", left, combinedInC)
	}
}
