package mpirun

import (
	"reflect"
	"testing"

	"gompi/hostfile"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/inventory"
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
	if picked, _, err := pick(cmdline.NodeRange{Least: 1, Most: 9}, hosts, []plan.Program{{}}); err != nil ||
		len(picked) != 4 {
		t.Errorf("picked %v, %v; want all", picked, err)
	}
	if _, _, err := pick(cmdline.NodeRange{Least: 3, Most: 3}, hosts, []plan.Program{share(1, 3)}); err == nil {
		t.Error("3 of 2 hosts were picked")
	}
	if _, _, err := pick(cmdline.NodeRange{Least: 1, Most: 1}, hosts, []plan.Program{share(0), share(3)}); err == nil {
		t.Error("a program without a host was accepted")
	}
}

// In an allocation a rankfile may name this machine as it names itself, as -H may.
func TestARankfileNamesThisMachine(t *testing.T) {
	f, err := plan.ParseRankfile("f", []byte("rank 0=b\nrank 1=localhost\nrank 2=own\n"))
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "own,b", "SLURM_TASKS_PER_NODE": "2(x2)"}
	s := inventory.Surroundings{
		Getenv:  func(name string) string { return vars[name] },
		IsLocal: func(host string) bool { return host == "localhost" || host == "own" },
	}
	spec := &cmdline.Spec{Programs: []cmdline.Program{{Argv: []string{"prog"}}}, Policy: plan.Policy{Rankfile: f}}
	_, listed, programs, err := planInput(spec, s, func(line string) { t.Error(line) })
	if err != nil {
		t.Fatal(err)
	}
	var hosts []plan.Host
	for _, h := range listed {
		hosts = append(hosts, plan.Host{Name: h.Name, Slots: h.Slots})
	}
	p, err := plan.Map(hosts, programs, spec.Policy)
	if err != nil || !reflect.DeepEqual(p.Local, [][]int{{1, 2}, {0}}) {
		t.Errorf("%+v, %v; want ranks 1 and 2 on %v", p, err, listed)
	}
}
