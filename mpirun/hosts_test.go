package mpirun

import (
	"reflect"
	"testing"

	"gompi/hostfile"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/plan"
)

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
