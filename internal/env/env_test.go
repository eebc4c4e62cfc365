package env

import (
	"slices"
	"strings"
	"testing"
)

func TestGettersReadValuesAndRefuseOthers(t *testing.T) {
	const name = "GOMPI_TEST_VALUE"
	type result struct {
		n  int64
		ok bool
	}
	getters := map[string]func() (int64, error){
		"int":   func() (int64, error) { n, err := Int(name); return int64(n), err },
		"bytes": func() (int64, error) { return Bytes(name) },
		"bool": func() (int64, error) {
			b, err := Bool(name)
			if b {
				return 1, err
			}
			return 0, err
		},
	}
	tests := []struct {
		getter, value string
		want          result
	}{
		{"int", "", result{0, true}}, {"int", "-3", result{-3, true}}, {"int", "3x", result{}},
		{"int", "1e3", result{}},
		{"bytes", "", result{0, true}}, {"bytes", "12", result{12, true}}, {"bytes", "64K", result{65536, true}},
		{"bytes", "2m", result{2 << 20, true}}, {"bytes", "1G", result{1 << 30, true}}, {"bytes", "-1", result{}},
		{"bytes", "K", result{}}, {"bytes", "9000000000G", result{}}, {"bytes", "1KB", result{}},
		{"bool", "", result{0, true}}, {"bool", "yes", result{1, true}}, {"bool", "TRUE", result{1, true}},
		{"bool", "off", result{0, true}}, {"bool", "2", result{}},
	}
	for _, tt := range tests {
		t.Setenv(name, tt.value)
		n, err := getters[tt.getter]()
		if got := (result{n, err == nil}); got != tt.want {
			t.Errorf("%s of %q = %v (%v), want %v", tt.getter, tt.value, got, err, tt.want)
		}
		if err != nil && (!strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), tt.value)) {
			t.Errorf("error %q does not quote variable and value", err)
		}
	}
}

func TestPortsAcceptsOnePortOrARange(t *testing.T) {
	tests := []struct {
		value  string
		lo, hi int
		ok     bool
	}{
		{"", 0, 0, true}, {"4000", 4000, 4000, true}, {"4000-4100", 4000, 4100, true},
		{"4100-4000", 0, 0, false}, {"0-5", 0, 0, false}, {"1-70000", 0, 0, false}, {"a-b", 0, 0, false},
		{"-", 0, 0, false},
	}
	for _, tt := range tests {
		t.Setenv(PortRange, tt.value)
		lo, hi, err := Ports(PortRange)
		if lo != tt.lo || hi != tt.hi || (err == nil) != tt.ok {
			t.Errorf("Ports(%q) = %d, %d, %v; want %d, %d, ok=%v", tt.value, lo, hi, err, tt.lo, tt.hi, tt.ok)
		}
	}
}

func TestFDIsMinusOneUnlessANumber(t *testing.T) {
	for value, want := range map[string]int{"": -1, "x": -1, "-4": -1, "99999999999": -1, "0": 0, "7": 7} {
		t.Setenv(BootFD, value)
		if got := FD(BootFD); got != want {
			t.Errorf("FD of %q = %d, want %d", value, got, want)
		}
	}
}

func TestUnsetVariableHasTheTablesDefault(t *testing.T) {
	t.Setenv(Eager, "")
	if n, err := Bytes(Eager); n != 64<<10 || err != nil {
		t.Errorf("Bytes(%s) unset = %d, %v; want 65536", Eager, n, err)
	}
}

func TestTableNamesEachVariableOnceAndRendersAll(t *testing.T) {
	md := markdown()
	var names []string
	for _, v := range Table() {
		names = append(names, v.Name)
		if v.Doc == "" || v.Reader == "" || strings.ContainsAny(v.Doc, "\n|") {
			t.Errorf("%s: doc %q, reader %q: want one line each, without |", v.Name, v.Doc, v.Reader)
		}
		if !strings.Contains(md, "| `"+v.Name+"` |") {
			t.Errorf("markdown lacks a row for %s", v.Name)
		}
	}
	slices.Sort(names)
	if n := len(slices.Compact(slices.Clone(names))); n != len(names) {
		t.Errorf("%d names, %d different", len(names), n)
	}
}
