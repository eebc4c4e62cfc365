package mpirun

import (
	"reflect"
	"testing"

	"gompi/hostfile"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/remote"
)

func TestAgentsOfOneMachineShareItsCores(t *testing.T) {
	four := [][]int{{0}, {1}, {2}, {3}}
	one := [][]int{{0, 1}}
	links := []*link{
		{hello: &ctl.Hello{Machine: "a", Cores: four}}, {hello: &ctl.Hello{Machine: "b", Cores: one}},
		{hello: &ctl.Hello{Machine: "a", Cores: four}}, {hello: &ctl.Hello{Machine: "b", Cores: one}},
	}
	hosts := planHosts(make([]hostfile.Host, 4), links)
	want := [][][]int{{{0}, {1}}, one, {{2}, {3}}, one}
	for i, h := range hosts {
		if !reflect.DeepEqual(h.Cores, want[i]) {
			t.Errorf("host %d has cores %v, want %v", i, h.Cores, want[i])
		}
	}
}

func TestHostsComeFromTheListsGiven(t *testing.T) {
	tests := []struct {
		lists []string
		names []string
		slots []int
	}{
		{[]string{""}, []string{"localhost"}, []int{0}},
		{[]string{"a:2,b"}, []string{"a", "b"}, []int{2, 1}},
		{[]string{"a:2", "b,a:1"}, []string{"a", "b"}, []int{3, 1}},
		{[]string{"a:2", ""}, []string{"a"}, []int{2}},
	}
	for _, tt := range tests {
		o := &options{}
		for _, l := range tt.lists {
			o.programs = append(o.programs, program{hosts: l})
		}
		_, hosts, programs, err := planInput(o, plainMachine, func(string) {})
		if err != nil || len(hosts) != len(tt.names) {
			t.Errorf("%q: %v, %v", tt.lists, hosts, err)
			continue
		}
		for i, h := range hosts {
			if h.Name != tt.names[i] || h.Slots != tt.slots[i] {
				t.Errorf("%q: host %d is %v, want %s with %d slots", tt.lists, i, h, tt.names[i], tt.slots[i])
			}
		}
		for i, p := range programs {
			if (len(p.Hosts) == 0) != (tt.lists[i] == "") {
				t.Errorf("%q: program %d may use %v", tt.lists, i, p.Hosts)
			}
		}
	}
}

func TestLocalNamesAreThoseOfThisMachine(t *testing.T) {
	for name, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.9.8.7": true, "::1": true, "::ffff:127.0.0.1": true,
		"192.0.2.1": false, "node99": false, "127.0.0.1.example": false, "": false,
	} {
		if got := remote.IsLocal(name); got != want {
			t.Errorf("IsLocal(%q) = %v, want %v", name, got, want)
		}
	}
}
