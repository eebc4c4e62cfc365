package mpirun

import (
	"net/netip"
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

// The node of rank 0 is the first. ssh and srun say which addresses the channel to
// a host has, others do not.
func TestMasterAddrIsAnAddressThatAllNodesReach(t *testing.T) {
	prefixes := func(list ...string) (out []netip.Prefix) {
		for _, p := range list {
			out = append(out, netip.MustParsePrefix(p))
		}
		return out
	}
	here := &link{host: "n1", agent: &remote.Agent{Via: "local"}, hello: &ctl.Hello{Host: "vm", Launcher: "203.0.113.9", Addresses: prefixes("192.168.0.1/24", "10.0.0.1/8")}}
	far := func(host string, hello ctl.Hello) *link {
		return &link{host: host, agent: &remote.Agent{Via: "x"}, hello: &hello}
	}
	byName := far("n2", ctl.Hello{Host: "vm2"})
	docker := far("n3", ctl.Hello{Addresses: prefixes("172.17.0.1/16", "10.0.0.3/24")})
	for _, tt := range []struct {
		name  string
		nodes []*link
		want  string
	}{
		{"one node", []*link{byName}, "127.0.0.1"},
		{"agents of this machine", []*link{here, here}, "127.0.0.1"},
		{"srun over loopback", []*link{far("n1", ctl.Hello{Launcher: "127.0.0.1"}), far("n2", ctl.Hello{Launcher: "127.0.0.1"})}, "127.0.0.1"},
		{"ssh", []*link{far("n1", ctl.Hello{Address: "10.0.0.7", Launcher: "10.0.0.1"}), here}, "10.0.0.7"},
		{"rank 0 on the launcher's host", []*link{here, far("n2", ctl.Hello{Launcher: "10.0.0.1"})}, "10.0.0.1"},
		{"ssh to the launcher's host", []*link{far("n1", ctl.Hello{Address: "127.0.0.1", Launcher: "127.0.0.1"}), far("n2", ctl.Hello{Launcher: "10.0.0.1"})}, "10.0.0.1"},
		{"srun from elsewhere", []*link{docker, far("n4", ctl.Hello{Launcher: "10.1.0.1", Addresses: prefixes("172.17.0.1/16", "10.0.0.4/24")})}, "10.0.0.3"},
		{"nobody says", []*link{here, byName}, "192.168.0.1"},
		{"no address at all", []*link{byName, here}, "n2"},
	} {
		if got := masterAddr(tt.nodes, 0); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
