package job

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"gompi/cudaops/topo"
	"gompi/hostfile"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/link"
	"gompi/mpirun/internal/plan"
)

func TestAgentsOfOneMachineShareItsCores(t *testing.T) {
	four := [][]int{{0}, {1}, {2}, {3}}
	one := [][]int{{0, 1}}
	found := []*host{
		{hello: &ctl.Hello{Machine: "a", Cores: four}}, {hello: &ctl.Hello{Machine: "b", Cores: one}},
		{hello: &ctl.Hello{Machine: "a", Cores: four}}, {hello: &ctl.Hello{Machine: "b", Cores: one}},
	}
	hosts := planHosts(make([]hostfile.Host, 4), found)
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
	here := &host{name: "n1", started: &link.Started{Here: true},
		hello: &ctl.Hello{Host: "vm", Launcher: "203.0.113.9", Addresses: prefixes("192.168.0.1/24", "10.0.0.1/8")}}
	far := func(name string, hello ctl.Hello) *host {
		return &host{name: name, started: &link.Started{}, hello: &hello}
	}
	byName := far("n2", ctl.Hello{Host: "vm2"})
	docker := far("n3", ctl.Hello{Addresses: prefixes("172.17.0.1/16", "10.0.0.3/24")})
	for _, tt := range []struct {
		name  string
		nodes []*host
		want  string
	}{
		{"one node", []*host{byName}, "127.0.0.1"},
		{"agents of this machine", []*host{here, here}, "127.0.0.1"},
		{"srun over loopback", []*host{far("n1", ctl.Hello{Network: network()}),
			far("n2", ctl.Hello{Network: network()})}, "127.0.0.1"},
		{"ssh", []*host{far("n1", ctl.Hello{Address: "10.0.0.7", Launcher: "10.0.0.1"}), here}, "10.0.0.7"},
		{"rank 0 on the launcher's host", []*host{here, far("n2", ctl.Hello{Launcher: "10.0.0.1"})}, "10.0.0.1"},
		{"ssh to the launcher's host", []*host{far("n1",
			ctl.Hello{Network: network(), Address: "127.0.0.1", Launcher: "127.0.0.1"}),
			far("n2", ctl.Hello{Launcher: "10.0.0.1"})}, "10.0.0.1"},
		{"srun from elsewhere", []*host{docker,
			far("n4", ctl.Hello{Launcher: "10.1.0.1", Addresses: prefixes("172.17.0.1/16", "10.0.0.4/24")})},
			"10.0.0.3"},
		{"tunnels", []*host{far("n1", ctl.Hello{Address: "127.0.0.1", Launcher: "127.0.0.1",
			Addresses: prefixes("10.0.0.8/24")}), far("n2", ctl.Hello{Address: "::1", Launcher: "::1"})}, "10.0.0.8"},
		{"rank 0 here, the other behind a tunnel", []*host{here, far("n2", ctl.Hello{Launcher: "127.0.0.1"})},
			"192.168.0.1"},
		{"nobody says", []*host{here, byName}, "192.168.0.1"},
		{"no address at all", []*host{byName, here}, "n2"},
	} {
		if got := masterAddr(tt.nodes, 0); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestSlotsAreWhatIsCountedOnEachHost(t *testing.T) {
	for _, tt := range []struct {
		of   string
		each int // GPUs of a rank
		want []int
	}{
		{"", 0, []int{7, 7}}, {"cpu", 0, []int{3, 1}}, {"cpu", 2, []int{3, 1}}, {"auto", 0, []int{4, 1}},
		{"auto", 2, []int{2, 1}},
		{"auto", 3, []int{1, 1}}, {"gpu", 0, nil},
	} {
		hosts := []plan.Host{{Name: "a", Slots: 7, Cores: [][]int{{0, 1}, {2}}, GPUs: make([]plan.GPU, 4)},
			{Name: "b", Slots: 7}}
		j := &Job{spec: &cmdline.Spec{PerHost: cmdline.PerHost{Of: tt.of}, Policy: plan.Policy{GPUs: tt.each}}}
		if err := j.size(hosts); (err == nil) != (tt.want != nil) {
			t.Errorf("%s: %v", tt.of, err)
		} else if err == nil && (hosts[0].Slots != tt.want[0] || hosts[1].Slots != tt.want[1]) {
			t.Errorf("%s: %d and %d slots, want %v", tt.of, hosts[0].Slots, hosts[1].Slots, tt.want)
		} else if err != nil && !strings.Contains(err.Error(), "b has no NVIDIA GPU") {
			t.Errorf("%s: %v, which does not name b", tt.of, err)
		}
	}
}

func TestWhatIsKnownOfAUnit(t *testing.T) {
	h := &topo.Host{Devices: []topo.Device{
		{Index: 0, CPUs: "0-1"},
		{Index: 1, CPUs: "not a list", Mode: topo.ExclusiveProcess, MIG: true, Slices: []topo.Slice{{UUID: "MIG-x"}}},
	}}
	for token, want := range map[string]plan.GPU{
		"0":      {Label: "0", Token: "0", CPUs: []int{0, 1}},
		"1":      {Label: "1", Token: "1", Exclusive: true, Slice: true},
		"MIG-x":  {Label: "1:0", Token: "MIG-x", Exclusive: true, Slice: true},
		"MIG-no": {Label: "MIG-no", Token: "MIG-no", Slice: true},
	} {
		units := h.Named(token)
		if len(units) != 1 {
			t.Fatalf("%s: %v", token, units)
		}
		if got := planGPU(h, units[0]); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %+v, want %+v", token, got, want)
		}
	}
}
