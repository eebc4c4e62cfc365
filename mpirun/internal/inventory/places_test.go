package inventory

import (
	"net/netip"
	"reflect"
	"testing"

	"gompi/hostfile"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/link"
)

func TestAgentsOfOneMachineShareItsCores(t *testing.T) {
	four := [][]int{{0}, {1}, {2}, {3}}
	one := [][]int{{0, 1}}
	found := []*Entry{
		{Hello: &ctl.Hello{Machine: "a", Cores: four}}, {Hello: &ctl.Hello{Machine: "b", Cores: one}},
		{Hello: &ctl.Hello{Machine: "a", Cores: four}}, {Hello: &ctl.Hello{Machine: "b", Cores: one}},
	}
	hosts := PlanHosts(make([]hostfile.Host, 4), found)
	want := [][][]int{{{0}, {1}}, one, {{2}, {3}}, one}
	for i, h := range hosts {
		if !reflect.DeepEqual(h.Cores, want[i]) {
			t.Errorf("host %d has cores %v, want %v", i, h.Cores, want[i])
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
	here := &Entry{Host: "n1", Started: &link.Started{Here: true},
		Hello: &ctl.Hello{Host: "vm", Launcher: "203.0.113.9", Addresses: prefixes("192.168.0.1/24", "10.0.0.1/8")}}
	far := func(name string, hello ctl.Hello) *Entry {
		return &Entry{Host: name, Started: &link.Started{}, Hello: &hello}
	}
	byName := far("n2", ctl.Hello{Host: "vm2"})
	docker := far("n3", ctl.Hello{Addresses: prefixes("172.17.0.1/16", "10.0.0.3/24")})
	for _, tt := range []struct {
		name  string
		nodes []*Entry
		want  string
	}{
		{"one node", []*Entry{byName}, "127.0.0.1"},
		{"agents of this machine", []*Entry{here, here}, "127.0.0.1"},
		{"srun over loopback", []*Entry{far("n1", ctl.Hello{Network: network()}),
			far("n2", ctl.Hello{Network: network()})}, "127.0.0.1"},
		{"ssh", []*Entry{far("n1", ctl.Hello{Address: "10.0.0.7", Launcher: "10.0.0.1"}), here}, "10.0.0.7"},
		{"rank 0 on the launcher's host", []*Entry{here, far("n2", ctl.Hello{Launcher: "10.0.0.1"})}, "10.0.0.1"},
		{"ssh to the launcher's host", []*Entry{far("n1",
			ctl.Hello{Network: network(), Address: "127.0.0.1", Launcher: "127.0.0.1"}),
			far("n2", ctl.Hello{Launcher: "10.0.0.1"})}, "10.0.0.1"},
		{"srun from elsewhere", []*Entry{docker,
			far("n4", ctl.Hello{Launcher: "10.1.0.1", Addresses: prefixes("172.17.0.1/16", "10.0.0.4/24")})},
			"10.0.0.3"},
		{"tunnels", []*Entry{far("n1", ctl.Hello{Address: "127.0.0.1", Launcher: "127.0.0.1",
			Addresses: prefixes("10.0.0.8/24")}), far("n2", ctl.Hello{Address: "::1", Launcher: "::1"})}, "10.0.0.8"},
		{"rank 0 here, the other behind a tunnel", []*Entry{here, far("n2", ctl.Hello{Launcher: "127.0.0.1"})},
			"192.168.0.1"},
		{"nobody says", []*Entry{here, byName}, "192.168.0.1"},
		{"no address at all", []*Entry{byName, here}, "n2"},
	} {
		if got := MasterAddr(tt.nodes, 0); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
