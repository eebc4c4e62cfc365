package cmdline

import (
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gompi/internal/cli"
)

func TestScriptsAndModulesRunUnderPython(t *testing.T) {
	tests := []struct{ line, argv string }{
		{"train.py -x 1", "python3 -u train.py -x 1"},
		{"./train.py", "python3 -u ./train.py"},
		{"-m pkg.train -x", "python3 -u -m pkg.train -x"},
		{"-no-python train.py", "train.py"},
		{"-torch-backend gompi train.py -x 1", "python3 -u -m gompi_torch train.py -x 1"},
		{"-torch-backend gompi -m pkg.train -x", "python3 -u -m gompi_torch -m pkg.train -x"},
		{"-torch-backend gompi python train.py 1", "python -m gompi_torch train.py 1"},
		{"-torch-backend gompi /venv/bin/python3.11 -u -O -m pkg.train x.py",
			"/venv/bin/python3.11 -u -O -m gompi_torch -m pkg.train x.py"},
		{"-torch-backend gompi python -m gompi_torch train.py", "python -m gompi_torch train.py"},
		{"-torch-backend gompi python -- train.py", "python -- train.py"},
		{"-torch-backend gompi python -uW ignore -Xdev -X tracemalloc=5 train.py",
			"python -uW ignore -Xdev -X tracemalloc=5 -m gompi_torch train.py"},
		{"-torch-backend gompi python -um mine", "python -um mine"},
		{"-torch-backend gompi python train", "python -m gompi_torch train"},
		{"-torch-backend gompi python -c code.py", "python -c code.py"},
		{"-torch-backend gompi accelerate-script 1", "accelerate-script 1"},
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
		} else if has := slices.Contains(spec.Programs[0].Env,
			"GOMPI_TORCH_BACKEND=gompi"); has != strings.Contains(tt.line, "backend") {
			t.Errorf("%s: GOMPI_TORCH_BACKEND is set: %t", tt.line, has)
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

// only returns an environment that has nothing but one variable.
func only(name, value string) func(string) (string, bool) {
	return func(n string) (string, bool) {
		if n == name {
			return value, true
		}
		return "", false
	}
}

// TestTorchrunsVariablesAreItsFlags sets the variable of each flag of torchrun that has one,
// instead of typing the flag: both give the same spec, and the same line about ignored flags.
func TestTorchrunsVariablesAreItsFlags(t *testing.T) {
	known := torchVariableNames()
	for _, row := range optionRows(t)["torchrun"] {
		for _, option := range row.options {
			variable := "PET_" + strings.ToUpper(strings.ReplaceAll(plainName(option), "-", "_"))
			if !slices.Contains(known, variable) {
				continue
			}
			known = slices.DeleteFunc(known, func(name string) bool { return name == variable })
			_, value, found := strings.Cut(option, " ")
			if !found {
				value = "1"
			}
			typed, output, err := parse(option+" p", testGetenv)
			got, notes, errVariable := parse("p", only(variable, value))
			if row.outcome == "refused" {
				want := variable + "=" + strconv.Quote(value) + ": " + row.text
				if errVariable == nil || errVariable.Error() != want {
					t.Errorf("%s=%s: %v, want %s", variable, value, errVariable, want)
				}
				continue
			}
			first, rest, _ := strings.Cut(notes, "\n")
			if err != nil || errVariable != nil || !reflect.DeepEqual(got, typed) || rest != output ||
				!strings.HasPrefix(first, "gompirun: "+variable+": as -") {
				t.Errorf("%s=%s: %+v, %v, %q; want, as of %s, %+v, %v, %q", variable, value, got, errVariable, notes,
					option, typed, err, output)
			}
		}
	}
	if len(known) > 0 {
		t.Errorf("the page has no flags for %v", known)
	}
}

func TestBadValuesOfTorchrunsVariablesAreQuoted(t *testing.T) {
	for variable, want := range map[string]string{
		"PET_NNODES=two":                   `PET_NNODES="two": want a number of nodes, 1 or more, or MIN:MAX`,
		"PET_NPROC_PER_NODE=some":          `PET_NPROC_PER_NODE="some": want a whole number, 1 or more, or gpu, cpu or auto`,
		"PET_RDZV_ENDPOINT=a:b:c":          `PET_RDZV_ENDPOINT="a:b:c": want host:port`,
		"PET_RDZV_CONF=join_timeout=soon":  `PET_RDZV_CONF="join_timeout=soon": -start-timeout "soon": want seconds, or a duration such as 90s, 2m or 1h30m`,
		"PET_STANDALONE=true":              `PET_STANDALONE="true": want 1 or 0`,
		"TORCH_ELASTIC_SHUTDOWN_TIMEOUT=x": `TORCH_ELASTIC_SHUTDOWN_TIMEOUT="x": -kill-delay "x": want seconds, or a duration such as 90s, 2m or 1h30m`,
	} {
		name, value, _ := strings.Cut(variable, "=")
		if _, _, err := parse("p", only(name, value)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", variable, err, want)
		}
	}
	if spec, _, err := parse("-nnodes 3 p", only("PET_NNODES", "2")); err != nil || spec.Nodes.Most != 3 {
		t.Errorf("PET_NNODES=2 and -nnodes 3: %+v, %v, want what is typed", spec, err)
	}
}

// torchVariableNames returns the names of all variables that stand for a flag of torchrun's and are
// called by it.
func torchVariableNames() (names []string) {
	all := func(name string) (string, bool) { return "1", strings.HasPrefix(name, "PET_") }
	for _, v := range cli.TorchVariables(all) {
		names = append(names, v.Name)
	}
	slices.Sort(names)
	return names
}

// TestAllVariablesOfTorchrunAreRead compares the variables with the flags of today's torchrun,
// and with the variables that installed torchruns read.
func TestAllVariablesOfTorchrunAreRead(t *testing.T) {
	without := []string{"h", "help", "m", "r", "t", "logs-specs", "numa-binding", "print-completion"}
	var today []string
	for _, flag := range optionLists(t)["torchrun 2.15.0"] {
		if !slices.Contains(without, flag) {
			today = append(today, "PET_"+strings.ToUpper(strings.ReplaceAll(flag, "-", "_")))
		}
	}
	known := torchVariableNames()
	if slices.Sort(today); !slices.Equal(known, today) {
		t.Errorf("read are %v, want %v", known, today)
	}
	const script = `from torch.distributed.run import get_args_parser
print(*("PET_" + a.dest.upper() for a in get_args_parser()._actions if type(a).__name__ in ("env", "check_env")))`
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		out, err := exec.Command(python, "-c", script).Output()
		if err != nil {
			t.Logf("%s has no torch", python)
			continue
		}
		names := strings.Fields(string(out))
		t.Logf("%s reads %d variables", python, len(names))
		for _, name := range names {
			if !slices.Contains(known, name) {
				t.Errorf("%s of %s is not read", name, python)
			}
		}
		if len(names) < 20 {
			t.Errorf("%s reads %v, want the variables of its flags", python, names)
		}
	}
}

// TestTorchrunsLinesInTheDocs reads each line of torchrun's that the docs have in a table, as
// gompirun and as the torchruns that are installed do.
func TestTorchrunsLinesInTheDocs(t *testing.T) {
	var lines []string
	for _, file := range []string{"from-torchrun.md", "seeds.md"} {
		page, err := os.ReadFile("../../../docs/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("`(?:torchrun|gompirun) ([^`]* (?:[\\w/]+\\.py|pkg\\.train|\\./train)[^`]*)`").FindAllStringSubmatch(string(page), -1) {
			typed := strings.HasPrefix(m[0], "`torchrun")
			if _, _, err := parse(m[1], testGetenv); err != nil {
				t.Errorf("%s: %v", m[0], err)
			}
			if typed {
				lines = append(lines, m[1])
			}
		}
	}
	if len(lines) < 9 {
		t.Errorf("%d lines of torchrun, want the tables: %q", len(lines), lines)
	}
	const script = `import sys
from torch.distributed.run import get_args_parser
for line in sys.argv[1:]: print(get_args_parser().parse_args(line.split()).training_script)`
	const dashes = `from torch.distributed.run import get_args_parser
assert "--nproc-per-node" in get_args_parser().format_help()`
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", dashes).Run() != nil {
			t.Logf("%s has no torch that takes -", python) // 1.13 takes _ alone
			continue
		}
		if out, err := exec.Command(python, append([]string{"-c", script}, lines...)...).CombinedOutput(); err != nil ||
			strings.Count(string(out), "train") < 6 {
			t.Errorf("torchrun of %s: %v\n%s", python, err, out)
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

// Reports call a program as its user does, whatever runs it.
func TestProgramsHaveTheNamesOfTheirScripts(t *testing.T) {
	for line, want := range map[string]string{
		"train.py 1":                               "train.py",
		"-torch-backend gompi dir/train.py":        "dir/train.py",
		"-m pkg.train x":                           "pkg.train",
		"-torch-backend gompi -m pkg.train":        "pkg.train",
		"/venv/bin/python3.11 -u -W ignore a.py":   "a.py",
		"python -m gompi_torch a.py b.py":          "a.py",
		"python -m gompi_torch --build":            "gompi_torch",
		"python -c pass a.py":                      "python",
		"python -":                                 "python",
		"python":                                   "python",
		"./a.out x.py":                             "./a.out",
		"python3 -m mpi4py.futures pool.py -n 100": "pool.py",
	} {
		spec, _, err := parse("-np 2 "+line, testGetenv)
		if err != nil {
			t.Fatal(err)
		}
		if name := spec.Programs[0].Name(); name != want {
			t.Errorf("%s: %q, want %q", line, name, want)
		}
	}
}
