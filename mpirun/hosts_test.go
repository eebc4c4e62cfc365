package mpirun

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"gompi/hostfile"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/plan"
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

func TestPickTakesTheFirstHostsThatProgramsMayUse(t *testing.T) {
	hosts := []hostfile.Host{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
	share := func(hosts ...int) (p plan.Program) {
		for _, h := range hosts {
			p.Hosts = append(p.Hosts, hostfile.Share{Host: h, Slots: h})
		}
		p.Name = "prog"
		return p
	}
	picked, programs, err := pick(cmdline.NodeRange{Least: 2, Most: 2}, hosts, []plan.Program{share(1, 3), share(3)})
	if err != nil || len(picked) != 2 || picked[0].Name != "b" || picked[1].Name != "d" {
		t.Fatalf("picked %v, %v; want b and d", picked, err)
	}
	if want := []hostfile.Share{{Host: 0, Slots: 1}, {Host: 1, Slots: 3}}; !reflect.DeepEqual(programs[0].Hosts, want) {
		t.Errorf("the first program has %v, want %v", programs[0].Hosts, want)
	}
	if picked, _, err := pick(cmdline.NodeRange{Least: 1, Most: 9}, hosts, []plan.Program{{}}); err != nil || len(picked) != 4 {
		t.Errorf("picked %v, %v; want all", picked, err)
	}
	if _, _, err := pick(cmdline.NodeRange{Least: 3, Most: 3}, hosts, []plan.Program{share(1, 3)}); err == nil {
		t.Error("3 of 2 hosts were picked")
	}
	if _, _, err := pick(cmdline.NodeRange{Least: 1, Most: 1}, hosts, []plan.Program{share(0), share(3)}); err == nil {
		t.Error("a program without a host was accepted")
	}
}

func TestSlotsAreWhatIsCountedOnEachHost(t *testing.T) {
	for _, tt := range []struct {
		of   string
		each int // GPUs of a rank
		want []int
	}{
		{"", 0, []int{7, 7}}, {"cpu", 0, []int{3, 1}}, {"cpu", 2, []int{3, 1}}, {"auto", 0, []int{4, 1}}, {"auto", 2, []int{2, 1}},
		{"auto", 3, []int{1, 1}}, {"gpu", 0, nil},
	} {
		hosts := []plan.Host{{Name: "a", Slots: 7, Cores: [][]int{{0, 1}, {2}}, GPUs: make([]plan.GPU, 4)}, {Name: "b", Slots: 7}}
		j := &job{spec: &cmdline.Spec{PerHost: cmdline.PerHost{Of: tt.of}, Policy: plan.Policy{GPUs: tt.each}}}
		if err := j.size(hosts); (err == nil) != (tt.want != nil) {
			t.Errorf("%s: %v", tt.of, err)
		} else if err == nil && (hosts[0].Slots != tt.want[0] || hosts[1].Slots != tt.want[1]) {
			t.Errorf("%s: %d and %d slots, want %v", tt.of, hosts[0].Slots, hosts[1].Slots, tt.want)
		} else if err != nil && !strings.Contains(err.Error(), "b has no NVIDIA GPU") {
			t.Errorf("%s: %v, which does not name b", tt.of, err)
		}
	}
}
