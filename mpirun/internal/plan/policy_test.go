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
		{"slot:OVERSUBSCRIBE", Policy{NoOversubscribe: true}, Policy{}},
		{"node:NoOversubscribe", Policy{}, Policy{Order: ByNode, NoOversubscribe: true}},
		{":nooversubscribe", Policy{Order: ByNode}, Policy{Order: ByNode, NoOversubscribe: true}},
		{"ppr:2:node:nooversubscribe", Policy{BindTo: BindCore}, Policy{PerNode: 2, NoOversubscribe: true, BindTo: BindCore}},
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
		{"", `-map-by "": want slot, node or ppr:N:node`},
		{"socket", `-map-by "socket": want slot, node or ppr:N:node`},
		{"ppr:2", `-map-by "ppr:2": want slot, node or ppr:N:node`},
		{"ppr:2:socket", `-map-by "ppr:2:socket": want slot, node or ppr:N:node`},
		{"ppr:0:node", `-map-by "ppr:0:node": "0" ranks per node: want a number from 1 to 1048576`},
		{"ppr:x:node", `-map-by "ppr:x:node": "x" ranks per node: want a number from 1 to 1048576`},
		{"ppr:2:node", `-map-by "ppr:2:node" and -N 3: want one of them, or the same number in both`},
		{"slot:pe=2", `-map-by "slot:pe=2": "pe=2": want oversubscribe or nooversubscribe after the colon`},
		{"slot:", `-map-by "slot:": "": want oversubscribe or nooversubscribe after the colon`},
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
		{"auto", BindAuto}, {"none", BindNone}, {"core", BindCore}, {"numa", BindNuma},
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
		{"", `-bind-to "": want none, core or numa`},
		{"socket", `-bind-to "socket": want none, core or numa`},
		{"core:2", `-bind-to "core:2": "2": want none, core or numa alone`},
	}
	for _, tt := range tests {
		if got, err := ParseBindTo(tt.in); err == nil || err.Error() != tt.want {
			t.Errorf("ParseBindTo(%q) = %v, %v; want %s", tt.in, got, err, tt.want)
		}
	}
}
