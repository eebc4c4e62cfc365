package mpirun

import (
	"reflect"
	"strings"
	"testing"

	"gompi/hostfile"
	"gompi/mpirun/internal/plan"
)

func TestScriptsAndModulesRunUnderPython(t *testing.T) {
	tests := []struct{ line, argv string }{
		{"train.py -x 1", "python3 -u train.py -x 1"},
		{"./train.py", "python3 -u ./train.py"},
		{"-m pkg.train -x", "python3 -u -m pkg.train -x"},
		{"-no-python train.py", "train.py"},
		{"--no_python=false train.py", "python3 -u train.py"},
		{"python3 train.py", "python3 train.py"},
		{"train.pyc", "train.pyc"},
	}
	for _, tt := range tests {
		o, _, err := parse(t, tt.line)
		if err != nil {
			t.Errorf("%s: %v", tt.line, err)
		} else if got := strings.Join(o.programs[0].argv, " "); got != tt.argv {
			t.Errorf("%s: %s, want %s", tt.line, got, tt.argv)
		}
	}
}

func TestOneRankOnAHostUnlessTheLineSaysMore(t *testing.T) {
	for line, perNode := range map[string]int{
		"-standalone p": 1, "-nnodes 2 p": 1, "-nnodes 2 -np 8 p": 0, "-nnodes 2 -N 3 p": 3,
		"-nnodes 2 -nproc-per-node 4 p": 4, "-standalone --nproc_per_node=gpu p": 0, "p": 0,
	} {
		if o, _, err := parse(t, line); err != nil || o.policy.PerNode != perNode {
			t.Errorf("%s: %v, want %d ranks on a host", line, err, perNode)
		}
	}
}

func TestPickTakesTheFirstHostsThatProgramsMayUse(t *testing.T) {
	hosts := []hostfile.Host{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
	share := func(hosts ...int) (p plan.Program) {
		for _, h := range hosts {
			p.Hosts = append(p.Hosts, hostfile.Share{Host: h, Slots: h})
		}
		p.Argv = []string{"prog"}
		return p
	}
	picked, programs, err := nodeRange{2, 2}.pick(hosts, []plan.Program{share(1, 3), share(3)})
	if err != nil || len(picked) != 2 || picked[0].Name != "b" || picked[1].Name != "d" {
		t.Fatalf("picked %v, %v; want b and d", picked, err)
	}
	if want := []hostfile.Share{{Host: 0, Slots: 1}, {Host: 1, Slots: 3}}; !reflect.DeepEqual(programs[0].Hosts, want) {
		t.Errorf("the first program has %v, want %v", programs[0].Hosts, want)
	}
	if picked, _, err := (nodeRange{1, 9}).pick(hosts, []plan.Program{{}}); err != nil || len(picked) != 4 {
		t.Errorf("picked %v, %v; want all", picked, err)
	}
	if _, _, err := (nodeRange{3, 3}).pick(hosts, []plan.Program{share(1, 3)}); err == nil {
		t.Error("3 of 2 hosts were picked")
	}
	if _, _, err := (nodeRange{1, 1}).pick(hosts, []plan.Program{share(0), share(3)}); err == nil {
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
		j := &job{options: &options{torchrun: torchrun{perHost: perHost{of: tt.of}}, policy: plan.Policy{GPUs: tt.each}}}
		if err := j.size(hosts); (err == nil) != (tt.want != nil) {
			t.Errorf("%s: %v", tt.of, err)
		} else if err == nil && (hosts[0].Slots != tt.want[0] || hosts[1].Slots != tt.want[1]) {
			t.Errorf("%s: %d and %d slots, want %v", tt.of, hosts[0].Slots, hosts[1].Slots, tt.want)
		} else if err != nil && !strings.Contains(err.Error(), "b has no NVIDIA GPU") {
			t.Errorf("%s: %v, which does not name b", tt.of, err)
		}
	}
}

func FuzzFlagValuesReadBack(f *testing.F) {
	for _, s := range []string{"1", "1:4", "gpu", "auto", "29500", "4:1", "", "-1", "1:2:3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var r, r2 nodeRange
		if r.Set(s) == nil && (r.least < 1 || r.most < r.least || r2.Set(r.String()) != nil || r2 != r) {
			t.Errorf("-nnodes %q is %+v, and read back %+v", s, r, r2)
		}
		var p, p2 perHost
		if p.Set(s) == nil && (!p.given() || p2.Set(p.String()) != nil || p2 != p) {
			t.Errorf("-nproc-per-node %q is %+v, and read back %+v", s, p, p2)
		}
	})
}
