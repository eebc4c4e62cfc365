package inventory

import (
	"fmt"
	"testing"

	"gompi/cudaops/topo"
	"gompi/mpirun/internal/plan"
)

func TestWhatIsKnownOfAUnit(t *testing.T) {
	h := &topo.Host{Devices: []topo.Device{
		{Index: 0, CPUs: "0-1"},
		{Index: 1, CPUs: "not a list", Mode: topo.ExclusiveProcess, MIG: true, Slices: []topo.Slice{{UUID: "MIG-x"}}},
	}}
	for token, want := range map[string]plan.GPU{
		"0":      {Label: "0", Token: "0", CPUs: []int{0, 1}},
		"1":      {Label: "1", Token: "1", Exclusive: true, Slice: true},
		"MIG-x":  {Label: "1:0", Token: "MIG-x", Exclusive: true, Slice: true},
		"MIG-no": {Label: "MIG-no", Token: "MIG-no", Slice: true},
	} {
		units := h.Named(token)
		if len(units) != 1 {
			t.Fatalf("%s: %v", token, units)
		}
		if got := planGPU(h, units[0]); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %+v, want %+v", token, got, want)
		}
	}
}
