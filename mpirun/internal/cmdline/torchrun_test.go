package cmdline

import (
	"strings"
	"testing"
)

func TestScriptsAndModulesRunUnderPython(t *testing.T) {
	tests := []struct{ line, argv string }{
		{"train.py -x 1", "python3 -u train.py -x 1"},
		{"./train.py", "python3 -u ./train.py"},
		{"-m pkg.train -x", "python3 -u -m pkg.train -x"},
		{"-no-python train.py", "train.py"},
		{"-torch-backend gompi train.py -x 1", "python3 -u -m gompi_torch train.py -x 1"},
		{"-torch-backend gompi -m pkg.train -x", "python3 -u -m gompi_torch -m pkg.train -x"},
		{"--no_python=false train.py", "python3 -u train.py"},
		{"python3 train.py", "python3 train.py"},
		{"train.pyc", "train.pyc"},
	}
	for _, tt := range tests {
		spec, _, err := parse(tt.line, testGetenv)
		if err != nil {
			t.Errorf("%s: %v", tt.line, err)
		} else if got := strings.Join(spec.Programs[0].Argv, " "); got != tt.argv {
			t.Errorf("%s: %s, want %s", tt.line, got, tt.argv)
		}
	}
}

func TestOneRankOnAHostUnlessTheLineSaysMore(t *testing.T) {
	for line, perNode := range map[string]int{
		"-standalone p": 1, "-nnodes 2 p": 1, "-nnodes 2 -np 8 p": 0, "-nnodes 2 -N 3 p": 3,
		"-nnodes 2 -nproc-per-node 4 p": 4, "-standalone --nproc_per_node=gpu p": 0, "p": 0,
	} {
		if spec, _, err := parse(line, testGetenv); err != nil || spec.Policy.PerNode != perNode {
			t.Errorf("%s: %v, want %d ranks on a host", line, err, perNode)
		}
	}
}

func FuzzFlagValuesReadBack(f *testing.F) {
	for _, s := range []string{"1", "1:4", "gpu", "auto", "29500", "4:1", "", "-1", "1:2:3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var r, r2 NodeRange
		if r.Set(s) == nil && (r.Least < 1 || r.Most < r.Least || r2.Set(r.String()) != nil || r2 != r) {
			t.Errorf("-nnodes %q is %+v, and read back %+v", s, r, r2)
		}
		var p, p2 PerHost
		if p.Set(s) == nil && (!p.Given() || p2.Set(p.String()) != nil || p2 != p) {
			t.Errorf("-nproc-per-node %q is %+v, and read back %+v", s, p, p2)
		}
	})
}
