package hostinfo

import (
	"reflect"
	"slices"
	"testing"
)

func TestHostDescribesThisOne(t *testing.T) {
	f := Host()
	var cpus []int
	for _, c := range f.Cores {
		cpus = append(cpus, c...)
	}
	slices.Sort(cpus)
	if want := CPUs(0); !reflect.DeepEqual(cpus, want) || len(cpus) == 0 {
		t.Errorf("cores %v, want each of %v once", f.Cores, want)
	}
	for what, parts := range map[string][][]int{"L3": f.L3, "Packages": f.Packages} {
		if all := slices.Sorted(slices.Values(slices.Concat(parts...))); parts != nil && !slices.Equal(all, cpus) {
			t.Errorf("%s %v, want each of %v once", what, parts, cpus)
		}
	}
	if f.Host == "" || f.Machine == "" {
		t.Errorf("host %q, machine %q", f.Host, f.Machine)
	}
}

func TestNoInterfaceLeadsToLoopbackOrToNoAddress(t *testing.T) {
	for _, address := range []string{"127.0.0.1", "::1", "localhost", "", "999.0.0.1"} {
		if name := InterfaceTo(address); name != "" {
			t.Errorf("%q is reached through %s", address, name)
		}
	}
}
