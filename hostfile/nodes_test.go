package hostfile

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestExpandNodesKeepsSlurmsOrder(t *testing.T) {
	tests := []struct{ list, want string }{
		{"n1", "n1"},
		{"n1,n2 n3\tn4\nn5", "n1 n2 n3 n4 n5"},
		{"gnode[2-5,07-11],gnoded1", "gnode2 gnode3 gnode4 gnode5 gnode07 gnode08 gnode09 gnode10 gnode11 gnoded1"},
		{"n[8-11]", "n8 n9 n10 n11"},
		{"n[08-11]", "n08 n09 n10 n11"},
		{"n[098-101]", "n098 n099 n100 n101"},
		{"n[1,3,5-6]", "n1 n3 n5 n6"},
		{"n[3,1]", "n3 n1"},
		{"r[0-1]n[0-1]", "r0n0 r0n1 r1n0 r1n1"},
		{"n[1-2]-ib,x", "n1-ib n2-ib x"},
		{",n1,,n2,", "n1 n2"},
	}
	for _, tt := range tests {
		got, err := ExpandNodes(tt.list)
		if err != nil || !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("ExpandNodes(%q) = %q, %v; want %s", tt.list, got, err, tt.want)
		}
	}
}

func TestExpandNodesErrors(t *testing.T) {
	tests := []struct{ list, want string }{
		{"", `node list "": no node in it: want for example n[01-04]`},
		{"n[1-2", `node list "n[1-2": "n[1-2": a [ without its ]`},
		{"n[2-1]", `node list "n[2-1]": "n[2-1]": range "2-1": want a number, or two with the smaller one first`},
		{"n[a-b]", `node list "n[a-b]": "n[a-b]": range "a-b": want a number, or two with the smaller one first`},
		{"[1-2]", `node list "[1-2]": host "[1-2]": want a name that begins with a letter or digit`},
		{"n:4", `node list "n:4": host "n:4": want a name of letters, digits and ._-, or an address`},
		{"n[1-200000],m[1-200000]", `node list "n[1-200000],m[1-200000]": "m[1-200000]" stands for too many hosts: want 262144 or fewer in all`},
		{"n[0-9999999999999999999]", `node list "n[0-9999999999999999999]": "n[0-9999999999999999999]": range "0-9999999999999999999": want a number, or two with the smaller one first`},
		{"n[000000000000000000000000001]", `node list "n[000000000000000000000000001]": "n[000000000000000000000000001]": range "000000000000000000000000001": want a number, or two with the smaller one first`},
	}
	for _, tt := range tests {
		if got, err := ExpandNodes(tt.list); err == nil || err.Error() != tt.want {
			t.Errorf("ExpandNodes(%q):\n got %q, %v\nwant %s", tt.list, got, err, tt.want)
		}
	}
}

func TestParseCounts(t *testing.T) {
	tests := []struct {
		list string
		want []int
	}{
		{"1", []int{1}},
		{"2(x3),1", []int{2, 2, 2, 1}},
		{"72(x2),36", []int{72, 72, 36}},
		{"1,2,1(x3),3,2", []int{1, 2, 1, 1, 1, 3, 2}},
		{" 4(x1)\n", []int{4}},
	}
	for _, tt := range tests {
		if got, err := ParseCounts(tt.list); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("ParseCounts(%q) = %v, %v; want %v", tt.list, got, err, tt.want)
		}
	}
}

func TestParseCountsErrors(t *testing.T) {
	tests := []struct{ list, want string }{
		{"", `counts "": "": want a number from 1 to 1048576`},
		{"2,", `counts "2,": "": want a number from 1 to 1048576`},
		{"0", `counts "0": "0": want a number from 1 to 1048576`},
		{"2(x3", `counts "2(x3": "2(x3": want a count, or count(xTIMES) as in 2(x3)`},
		{"2(x0)", `counts "2(x0)": "2(x0)": want a number from 1 to 262144`},
		{"2(x262145)", `counts "2(x262145)": "2(x262145)": want a number from 1 to 262144`},
		{"2(x262144),1", `counts "2(x262144),1": want 262144 or fewer`},
		{"2x3", `counts "2x3": "2x3": want a number from 1 to 1048576`},
	}
	for _, tt := range tests {
		if got, err := ParseCounts(tt.list); err == nil || err.Error() != tt.want {
			t.Errorf("ParseCounts(%q) = %v, %v; want %s", tt.list, got, err, tt.want)
		}
	}
}
