package mpirun

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gompi/internal/cli"
	"gompi/internal/env"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/plan"
)

// options is a command line, read.
type options struct {
	programs []program
	hostfile string
	policy   plan.Policy

	appFile        string
	stdin          int // a rank, ctl.StdinAll or ctl.StdinNone
	timeout        time.Duration
	killDelay      time.Duration
	stallWarning   time.Duration
	stallStacks    bool
	getStacks      bool // of all ranks, at the time limit
	attach         attach
	heartbeat      time.Duration
	portRange      string // for the ranks to listen on
	interfaces     string // for the ranks to use
	displayMap     bool
	printRankMap   bool
	doNotLaunch    bool
	reportPID      string
	reportBindings bool
	quiet, verbose bool
	version        bool

	outputs
	reach
	preload
	torchrun
	recovery
}

// A program is one part of the command line between ":".
type program struct {
	argv  []string
	np    int // 0: all slots
	hosts string
	wdir  string
	path  string // where to look for the program before PATH
	env   []string
}

// errNoProgram asks for the usage.
var errNoProgram = errors.New("no program to run")

// parseOptions reads a command line. getenv resolves -x NAME; what the user
// should know goes to notes.
func parseOptions(args []string, getenv func(string) (string, bool), notes io.Writer) (*options, error) {
	o := &options{killDelay: 2 * time.Second}
	args = append(cli.TorchVariables(getenv, func(line string) { fmt.Fprintln(notes, line) }), args...)
	for i := 0; i == 0 || args != nil; i++ {
		set, finish := o.flags(i == 0, getenv, notes)
		rest, err := set.Parse(args)
		if err == nil && i == 0 && o.appFile != "" {
			rest, err = o.parseAppFile(set, rest)
		}
		if err != nil {
			return nil, inPart(i, err)
		}
		if o.version {
			return o, nil
		}
		if o.attach.to != "" {
			return o, o.attach.check(rest)
		}
		argv, next := cutProgram(rest)
		if len(argv) == 0 {
			return nil, inPart(i, errNoProgram)
		}
		p, err := finish(argv)
		if err != nil {
			return nil, inPart(i, err)
		}
		o.programs = append(o.programs, p)
		args = next
	}
	return o, o.likeTorchrun()
}

// inPart names the program whose flags are wrong, where there are several.
func inPart(i int, err error) error {
	if i == 0 || errors.Is(err, cli.ErrHelp) {
		return err
	}
	return fmt.Errorf(`program %d, after ":": %w`, i+1, err)
}

// cutProgram cuts at the first argument that is exactly ":". next, what follows, is
// nil if there is none.
func cutProgram(args []string) (argv, next []string) {
	i := slices.Index(args, ":")
	if i < 0 {
		return args, nil
	}
	return args[:i], append([]string{}, args[i+1:]...)
}

// parseAppFile reads the file that stands for the programs: a line for each, as it
// would be between ":". It parses the flags of the first, and returns what Parse has
// left of the command line that this makes. rest is what the true one has left.
func (o *options) parseAppFile(set *cli.Set, rest []string) ([]string, error) {
	if len(rest) > 0 {
		return nil, fmt.Errorf("-app %s and program %q: want one of them", o.appFile, rest[0])
	}
	text, err := os.ReadFile(o.appFile)
	if err != nil {
		return nil, fmt.Errorf("-app: %w", err)
	}
	var args []string
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		words, err := cli.SplitCommand(line)
		if err != nil {
			return nil, fmt.Errorf("-app: %s:%d: %w", o.appFile, n, err)
		}
		if len(args) > 0 {
			args = append(args, ":")
		}
		args = append(args, words...)
	}
	if len(args) == 0 {
		return nil, fmt.Errorf("-app %s: want a line for each program, as in: -np 2 ./prog", o.appFile)
	}
	file := o.appFile
	o.appFile = ""
	rest, err = set.Parse(args)
	if err == nil && o.appFile != "" {
		err = fmt.Errorf(`-app %s: "-app %s" is in it: want programs, not another file`, file, o.appFile)
	}
	return rest, err
}

// flags declares the flags of one part of the command line: those of the
// program, and for the first part those of the job. The function returned takes
// what Parse has left, and returns what it has found about the program.
func (o *options) flags(first bool, getenv func(string) (string, bool), notes io.Writer) (*cli.Set, func([]string) (program, error)) {
	set := cli.New("gompirun")
	var p program
	var module, noPython bool
	var exports []string
	set.VarP((*cli.Count)(&p.np), "np", "n", "")
	set.Alias("np", "c")
	set.StringVarP(&p.hosts, "host", "H", "", "")
	set.StringVar(&p.wdir, "wdir", "", "")
	set.StringVar(&p.path, "path", "", "")
	set.StringArrayVarP(&exports, "x", "x", nil, "")
	set.BoolVarP(&module, "module", "m", false, "")
	set.BoolVar(&noPython, "no-python", false, "")
	note := func(line string) { fmt.Fprintln(notes, line) }
	set.Habits(cli.LauncherHabits, note)
	finishJob := func() error { return nil }
	if first {
		finishJob = o.jobFlags(set)
	}
	return set, func(argv []string) (program, error) {
		err := finishJob()
		if err == nil {
			err = o.asSrunHasThem(set, getenv, note)
		}
		if err != nil {
			return p, err
		}
		if p.argv, err = underPython(argv, module, noPython); err != nil {
			return p, err
		}
		if p.wdir != "" {
			if p.wdir, err = filepath.Abs(p.wdir); err != nil {
				return p, err
			}
		}
		if p.env, err = exported(exports, getenv, note); err != nil {
			return p, err
		}
		return p, p.find()
	}
}

// asSrunHasThem tells of letters that mean something else to srun, where they may
// have been typed so.
func (o *options) asSrunHasThem(set *cli.Set, getenv func(string) (string, bool), note func(string)) error {
	if set.Spelled("c") && (set.Spelled("n") || set.Spelled("np")) {
		return errors.New("-c and -n are both numbers of ranks; for srun's -c, cores of each rank, type -map-by :PE=N")
	}
	if _, inSlurm := getenv("SLURM_JOB_ID"); inSlurm && set.Spelled("N") && o.nodes.most == 0 {
		note(fmt.Sprintf("gompirun: -N %d is ranks on each host; for srun's -N, a number of hosts, type -nnodes %[1]d", o.policy.PerNode))
	}
	return nil
}

// jobFlags declares the flags of the whole job, which stand before the first
// program. The function it returns applies their values.
func (o *options) jobFlags(set *cli.Set) func() error {
	var stdin string
	set.StringVar(&o.hostfile, "hostfile", "", "")
	set.Alias("hostfile", "machinefile")
	set.StringVar(&o.appFile, "app", "", "")
	set.Alias("app", "configfile")
	finishPlacement := o.placementFlags(set)
	finishOutputs := o.outputFlags(set)
	set.StringVar(&stdin, "stdin", "0", "")
	set.Var((*cli.Duration)(&o.timeout), "timeout", "")
	set.Var((*cli.Duration)(&o.killDelay), "kill-delay", "")
	o.stallFlags(set)
	o.attach.flags(set)
	o.heartbeatFlags(set)
	o.reachFlags(set)
	o.preloadFlags(set)
	set.StringVar(&o.portRange, "port-range", "", "")
	set.StringVar(&o.interfaces, "iface", "", "")
	set.BoolVar(&o.displayMap, "display-map", false, "")
	set.BoolVar(&o.printRankMap, "print-rank-map", false, "")
	set.BoolVar(&o.doNotLaunch, "do-not-launch", false, "")
	set.StringVar(&o.reportPID, "report-pid", "", "")
	set.BoolVar(&o.reportBindings, "report-bindings", false, "")
	set.BoolVarP(&o.quiet, "quiet", "q", false, "")
	set.BoolVarP(&o.verbose, "verbose", "v", false, "")
	set.BoolVar(&o.version, "version", false, "")
	finishTorch := o.torchFlags(set)
	o.recoveryFlags(set)
	return func() error {
		if o.attach.debugger != "" || o.attach.job != "" {
			return errors.New("-debugger and -job are for a job that runs: start it, then type gompirun -attach RANK with them")
		}
		if err := finishTorch(); err != nil {
			return err
		}
		if err := finishPlacement(); err != nil {
			return err
		}
		if err := finishOutputs(); err != nil {
			return err
		}
		var err error
		if o.portRange != "" {
			if _, _, err = env.ParsePorts(o.portRange); err != nil {
				return fmt.Errorf("-port-range %w", err)
			}
		}
		o.stdin, err = parseStdin(stdin)
		return err
	}
}

func parseStdin(s string) (int, error) {
	switch s {
	case "all":
		return ctl.StdinAll, nil
	case "none":
		return ctl.StdinNone, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("-stdin %q: want a rank, all or none", s)
	}
	return n, nil
}

// find looks for the program in the folders of -path, as Open MPI's mpirun does
// before it looks in PATH.
func (p *program) find() error {
	if p.path == "" || strings.Contains(p.argv[0], "/") {
		return nil
	}
	for _, dir := range filepath.SplitList(p.path) {
		at, err := filepath.Abs(filepath.Join(dir, p.argv[0]))
		if err != nil {
			return err
		}
		if st, err := os.Stat(at); err == nil && !st.IsDir() && st.Mode()&0o111 != 0 {
			p.argv = append([]string{at}, p.argv[1:]...)
			return nil
		}
	}
	return nil
}

// exported turns the values of -x into variables. The whole environment is
// handed on anyway, so a name without a value only says that it must be there.
func exported(values []string, getenv func(string) (string, bool), note func(string)) ([]string, error) {
	var vars []string
	for _, v := range values {
		name, _, given := strings.Cut(v, "=")
		switch {
		case name == "":
			return nil, fmt.Errorf("-x %q: want NAME or NAME=value", v)
		case given:
			vars = append(vars, v)
		case strings.HasSuffix(name, "*"):
		default:
			value, ok := getenv(name)
			if !ok {
				note(fmt.Sprintf("gompirun: -x %s: there is no such variable here", name))
				continue
			}
			vars = append(vars, name+"="+value)
		}
	}
	return vars, nil
}
