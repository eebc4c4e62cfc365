package facts

import (
	"reflect"
	"slices"
	"testing"
)

func TestParseCPUsReadsTheKernelsLists(t *testing.T) {
	tests := map[string][]int{
		"0-3,8\n": {0, 1, 2, 3, 8}, "5": {5}, "": nil, "x": nil, "3-1": nil, "0,x,2": {0, 2}, "0-99999999": nil,
	}
	for list, want := range tests {
		if got := parseCPUs(list); !reflect.DeepEqual(got, want) {
			t.Errorf("parseCPUs(%q) = %v, want %v", list, got, want)
		}
	}
}

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
	if f.Host == "" || f.Machine == "" {
		t.Errorf("host %q, machine %q", f.Host, f.Machine)
	}
}
