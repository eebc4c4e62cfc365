package plan

import "testing"

func TestSetMapBy(t *testing.T) {
	tests := []struct {
		in   string
		from Policy
		want Policy
	}{
		{"slot", Policy{Order: ByNode}, Policy{}},
		{"node", Policy{}, Policy{Order: ByNode}},
		{"NODE", Policy{}, Policy{Order: ByNode}},
		{"ppr:2:node", Policy{}, Policy{PerNode: 2}},
		{"ppr:2:node", Policy{PerNode: 2}, Policy{PerNode: 2}},
		{"node", Policy{PerNode: 2}, Policy{PerNode: 2, Order: ByNode}},
		{"slot:OVERSUBSCRIBE", Policy{NoOversubscribe: true}, Policy{Oversubscribe: true}},
		{"node:NoOversubscribe", Policy{}, Policy{Order: ByNode, NoOversubscribe: true}},
		{":nooversubscribe", Policy{Order: ByNode}, Policy{Order: ByNode, NoOversubscribe: true}},
		{"core", Policy{}, Policy{Order: ByCore}},
		{"NUMA", Policy{}, Policy{Order: ByNuma}},
		{"l3cache", Policy{}, Policy{Order: ByL3}},
		{"ppr:2:L3CACHE", Policy{}, Policy{Order: ByL3, PerDomain: 2}},
		{"socket:PE=2", Policy{}, Policy{Order: ByPackage, PE: 2}},
		{":pe=4:oversubscribe", Policy{Order: ByNode, NoOversubscribe: true},
			Policy{Order: ByNode, PE: 4, Oversubscribe: true}},
		{"node:PE=1,OVERSUBSCRIBE", Policy{}, Policy{Order: ByNode, PE: 1, Oversubscribe: true}},
		{"socket:SPAN,PE=2:nooversubscribe", Policy{},
			Policy{Order: ByPackage, Span: true, PE: 2, NoOversubscribe: true}},
		{"ppr:2:numa", Policy{}, Policy{Order: ByNuma, PerDomain: 2}},
		{"ppr:1:socket:pe=8", Policy{PerNode: 3}, Policy{Order: ByPackage, PerDomain: 1, PE: 8, PerNode: 3}},
		{"ppr:2:node:nooversubscribe", Policy{BindTo: BindCore},
			Policy{PerNode: 2, NoOversubscribe: true, BindTo: BindCore}},
	}
	for _, tt := range tests {
		p := tt.from
		if err := p.SetMapBy(tt.in); err != nil || p != tt.want {
			t.Errorf("SetMapBy(%q) on %+v: %+v, %v; want %+v", tt.in, tt.from, p, err, tt.want)
		}
	}
}

func TestSetMapByErrorsQuoteTheValueAndChangeNothing(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", `-map-by "": want slot, node, core, hwthread, l3cache, numa, package, or ppr:N:node and the like`},
		{"board", `-map-by "board": want slot, node, core, hwthread, l3cache, numa, package, or ppr:N:node and the like`},
		{"l1cache", `-map-by "l1cache": of caches gompirun knows l3cache alone: want slot, node, core, hwthread, l3cache, numa, package, or ppr:N:node and the like`},
		{"ppr:2", `-map-by "ppr:2": want slot, node, core, hwthread, l3cache, numa, package, or ppr:N:node and the like`},
		{"ppr:2:core", `-map-by "ppr:2:core": want slot, node, core, hwthread, l3cache, numa, package, or ppr:N:node and the like`},
		{"ppr:0:node", `-map-by "ppr:0:node": "0" ranks per node: want a number from 1 to 1048576`},
		{"ppr:x:node", `-map-by "ppr:x:node": "x" ranks per node: want a number from 1 to 1048576`},
		{"ppr:2:node", `-map-by "ppr:2:node" and -N 3: want one of them, or the same number in both`},
		{"slot:near", `-map-by "slot:near": "near": want PE=N, span, oversubscribe, nooversubscribe, hwtcpus or corecpus after the colon`},
		{"pe-list=0,x", `-map-by "pe-list=0,x": "0,x": want numbers of CPUs, as in 0-3,8`},
		{"slot:pe=0", `-map-by "slot:pe=0": PE=0: want a number of cores, 1 or more`},
		{"slot:", `-map-by "slot:": "": want PE=N, span, oversubscribe, nooversubscribe, hwtcpus or corecpus after the colon`},
	}
	for _, tt := range tests {
		before := Policy{PerNode: 3, Order: ByNode}
		p := before
		if err := p.SetMapBy(tt.in); err == nil || err.Error() != tt.want {
			t.Errorf("SetMapBy(%q): %v\nwant %s", tt.in, err, tt.want)
		}
		if p != before {
			t.Errorf("SetMapBy(%q) failed and left %+v, want %+v", tt.in, p, before)
		}
	}
}

func TestParseBindTo(t *testing.T) {
	tests := []struct {
		in   string
		want BindTo
	}{
		{"auto", BindAuto}, {"none", BindNone}, {"core", BindCore}, {"numa", BindNuma}, {"L3cache", BindL3},
		{"hwthread", BindHWThread}, {"socket", BindPackage}, {"gpu", BindGPU}, {"package", BindPackage},
		{"CORE", BindCore}, {"core:overload-allowed", BindCore}, {"numa:IF-SUPPORTED", BindNuma},
	}
	for _, tt := range tests {
		if got, err := ParseBindTo(tt.in); err != nil || got != tt.want {
			t.Errorf("ParseBindTo(%q) = %v, %v; want %v", tt.in, got, err, tt.want)
		}
	}
}

func TestParseBindToErrorsQuoteTheValue(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", `-bind-to "": want none, hwthread, core, l3cache, numa, package or gpu`},
		{"board", `-bind-to "board": want none, hwthread, core, l3cache, numa, package or gpu`},
		{"l2cache", `-bind-to "l2cache": of caches gompirun knows l3cache alone: want none, hwthread, core, l3cache, numa, package or gpu`},
		{"core:2", `-bind-to "core:2": "2": want none, hwthread, core, l3cache, numa, package or gpu alone`},
	}
	for _, tt := range tests {
		if got, err := ParseBindTo(tt.in); err == nil || err.Error() != tt.want {
			t.Errorf("ParseBindTo(%q) = %v, %v; want %s", tt.in, got, err, tt.want)
		}
	}
}
