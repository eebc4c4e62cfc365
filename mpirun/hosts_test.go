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
