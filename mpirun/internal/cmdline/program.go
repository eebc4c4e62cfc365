package cmdline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gompi/internal/cli"
	"gompi/internal/env"
)

// A programFlags holds the flag values of one program, before they are applied.
type programFlags struct {
	program          Program
	path             string   // searched for the program before PATH
	exports          []string // the values of -x
	forAll           []string // the values of -x-all
	module, noPython bool
	torchBackend     string // torch.distributed's backend, instead of the script's choice
}

// declare declares the flags of one program.
func (f *programFlags) declare(set *cli.Set) {
	set.Group = "ranks and hosts"
	set.Flag("np n", "N", (*cli.Count)(&f.program.NP), "start N ranks (default: one for each slot)|")
	f.program.hostFlag(set)
	set.Group = "program"
	set.Flag("x", "NAME[=value]", &f.exports, "set a variable for the ranks|; the environment is handed on in any "+
		"case, to other hosts without HOME, USER, SSH_... and the like")
	set.Flag("x-all", "NAME[=value]", &f.forAll, `the same for the ranks of all programs, before or after ":"; -x of `+
		"a program takes precedence")
	set.Flag("wdir", "DIR", &f.program.Wdir, "working directory of the ranks|")
	set.Flag("path", "DIRS", &f.path, "where to look for program before PATH")
	set.Group = "as torchrun"
	set.Flag("m module", "", &f.module, "program is a Python module")
	set.Flag("no-python", "", &f.noPython, "run a program whose name ends in .py by itself (default: under "+
		`"python3 -u")`)
	set.Flag("torch-backend", "gompi", &f.torchBackend,
		"a program that asks torch.distributed for gloo, mpi or, where "+
			"there is no GPU, nccl gets gompi: GOMPI_TORCH_BACKEND=gompi (needs gompi_torch, see docs/pytorch.md)")
}

// hostFlag declares the flag that lists hosts on the line.
func (p *Program) hostFlag(set *cli.Set) {
	set.Flag("H host", "LIST", &p.Hosts, "hosts on the command line: node01:4,node02:4| (one slot where no number is "+
		"given); with -hostfile, which of them to use")
}

// finish applies the flags to argv, the program on the command line.
func (f *programFlags) finish(argv []string, getenv func(string) (string, bool), note func(string)) (p Program,
	err error) {
	p = f.program
	if len(argv) == 0 {
		return p, f.noProgram(getenv)
	}
	if p.Argv, err = f.underPython(argv); err != nil {
		return p, err
	}
	if p.Wdir != "" {
		if p.Wdir, err = filepath.Abs(p.Wdir); err != nil {
			return p, err
		}
	}
	if p.Env, err = exported("-x", f.exports, getenv, note); err != nil {
		return p, err
	}
	if f.torchBackend != "" {
		p.Env = append(p.Env, env.TorchBackend+"="+f.torchBackend)
	}
	p.Argv, err = find(p.Argv, f.path)
	return p, err
}

// noProgram is the error of a line without a program. A flag may have taken it as its value.
func (f *programFlags) noProgram(getenv func(string) (string, bool)) error {
	if n := len(f.exports); n > 0 && !strings.Contains(f.exports[n-1], "=") {
		if _, set := getenv(f.exports[n-1]); !set {
			return fmt.Errorf("no program to run: -x has taken %q for the name of a variable", f.exports[n-1])
		}
	}
	return errors.New("no program to run")
}

// underPython returns the command that runs a program. Modules, and scripts named *.py even if
// executable, run under the python3 in PATH, as in torchrun.
func (f *programFlags) underPython(argv []string) ([]string, error) {
	python := []string{"python3", "-u"}
	isScript := strings.HasSuffix(argv[0], ".py") && !f.noPython
	switch {
	case f.module && f.noPython:
		return nil, errors.New("-m and -no-python: want one of them")
	case f.torchBackend != "" && f.torchBackend != "gompi":
		return nil, fmt.Errorf("-torch-backend %q: want gompi, or nothing: without the flag scripts have the backend that they ask for", f.torchBackend)
	case f.torchBackend != "":
		python = append(python, "-m", "gompi_torch") // reports if gompi_torch is missing
	}
	switch {
	case f.module:
		return append(append(python, "-m"), argv...), nil
	case isScript:
		return append(python, argv...), nil
	case f.torchBackend != "" && pythonName.MatchString(filepath.Base(argv[0])):
		return throughTorch(argv), nil
	}
	return argv, nil
}

// find searches the folders of path for the program, as Open MPI's mpirun does before PATH.
func find(argv []string, path string) ([]string, error) {
	if path == "" || strings.Contains(argv[0], "/") {
		return argv, nil
	}
	for _, dir := range filepath.SplitList(path) {
		at, err := filepath.Abs(filepath.Join(dir, argv[0]))
		if err != nil {
			return nil, err
		}
		if st, err := os.Stat(at); err == nil && !st.IsDir() && st.Mode()&0o111 != 0 {
			return append([]string{at}, argv[1:]...), nil
		}
	}
	return argv, nil
}

// exported turns the values of -x, or of -x-all, into variables. Ranks get the whole environment
// anyway, so a name without a value only requires that the variable exist.
func exported(flag string, values []string, getenv func(string) (string, bool), note func(string)) ([]string, error) {
	var vars []string
	for _, v := range values {
		name, _, given := strings.Cut(v, "=")
		switch {
		case name == "", !given && strings.Contains(name, "/"):
			return nil, fmt.Errorf("%s %q: want NAME or NAME=value, and then the program", flag, v)
		case given:
			vars = append(vars, v)
		case strings.HasSuffix(name, "*"):
		default:
			value, ok := getenv(name)
			if !ok {
				note(fmt.Sprintf("gompirun: %s %s: there is no such variable here", flag, name))
				continue
			}
			vars = append(vars, name+"="+value)
		}
	}
	return vars, nil
}
