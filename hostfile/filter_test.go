package hostfile

import (
	"reflect"
	"strings"
	"testing"
)

func TestFilter(t *testing.T) {
	const file = "a slots=4\nb slots=2\nc.cluster slots=8\nh slots=1 port=1\nh slots=1 port=2"
	tests := []struct {
		name, only string
		want       []Share
	}{
		{"a bare host gives all its slots", "b", []Share{{1, 0}}},
		{"the order is the file's", "b,a", []Share{{0, 0}, {1, 0}}},
		{"a count limits", "a:3,b", []Share{{0, 3}, {1, 0}}},
		{"mentions are a count", "a,a", []Share{{0, 2}}},
		{"star is all", "a:*", []Share{{0, 0}}},
		{"short names find full ones", "c", []Share{{2, 0}}},
		{"a name stands for all its ports", "h", []Share{{3, 0}, {4, 0}}},
		{"a port picks one", "h port=2", []Share{{4, 0}}},
		{"exclusions alone leave the rest", "^a,^h", []Share{{1, 0}, {2, 0}}},
	}
	l, err := Parse("hosts", strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		only, err := ParseList("-H", tt.only)
		if err != nil {
			t.Fatal(err)
		}
		got, err := l.Filter(only)
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: Filter(%q) = %v, %v; want %v", tt.name, tt.only, got, err, tt.want)
		}
	}
}

func TestFilterOfOneListByAnotherCountsMentions(t *testing.T) {
	union, err := ParseList("-H", "a,b,a:3")
	if err != nil {
		t.Fatal(err)
	}
	only, err := ParseList("-H", "a,b")
	if err != nil {
		t.Fatal(err)
	}
	got, err := union.Filter(only)
	if want := []Share{{0, 1}, {1, 1}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

func TestFilterErrors(t *testing.T) {
	l, err := Parse("hosts", strings.NewReader("a slots=4\nb port=7"))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ only, want string }{
		{"z:2", `host "z slots=2" is not among the 2 known hosts: want one of them, as "a"`},
		{"b port=8", `host "b port=8" is not among the 2 known hosts: want one of them, as "a"`},
		{"^a,^b", "all of the 2 known hosts are excluded"},
	}
	for _, tt := range tests {
		only, err := ParseList("-H", tt.only)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := l.Filter(only); err == nil || err.Error() != tt.want {
			t.Errorf("Filter(%q) = %v, %v; want %s", tt.only, got, err, tt.want)
		}
	}
}
