package mpirun

import (
	"errors"
	"fmt"
	"io"
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

	tag, stamp     bool
	outputDir      string
	stdin          int // a rank, ctl.StdinAll or ctl.StdinNone
	timeout        time.Duration
	killDelay      time.Duration
	stallWarning   time.Duration
	stallStacks    bool
	attach         attach
	heartbeat      time.Duration
	portRange      string // for the ranks to listen on
	interfaces     string // for the ranks to use
	displayMap     bool
	reportBindings bool
	quiet, verbose bool
	version        bool

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
	env   []string
}

// errNoProgram asks for the usage.
var errNoProgram = errors.New("no program to run")

// parseOptions reads a command line. getenv resolves -x NAME; what the user
// should know goes to notes.
func parseOptions(args []string, getenv func(string) (string, bool), notes io.Writer) (*options, error) {
	o := &options{killDelay: 2 * time.Second}
	args = append(cli.TorchVariables(getenv, func(line string) { fmt.Fprintln(notes, line) }), args...)
	for i, part := range splitPrograms(args) {
		set, finish := o.flags(i == 0, getenv, notes)
		rest, err := set.Parse(part)
		if err != nil {
			return nil, inPart(i, err)
		}
		if o.version {
			return o, nil
		}
		if o.attach.to != "" {
			return o, o.attach.check(rest)
		}
		if len(rest) == 0 {
			if i == 0 {
				return nil, errNoProgram
			}
			return nil, fmt.Errorf(`program %d, after ":": %w`, i+1, errNoProgram)
		}
		p, err := finish(rest)
		if err != nil {
			return nil, inPart(i, err)
		}
		o.programs = append(o.programs, p)
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

// splitPrograms splits at arguments that are exactly ":".
func splitPrograms(args []string) [][]string {
	var parts [][]string
	for {
		i := slices.Index(args, ":")
		if i < 0 {
			return append(parts, args)
		}
		parts, args = append(parts, args[:i]), args[i+1:]
	}
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
	set.StringArrayVarP(&exports, "x", "x", nil, "")
	set.BoolVarP(&module, "module", "m", false, "")
	set.BoolVar(&noPython, "no-python", false, "")
	note := func(line string) { fmt.Fprintln(notes, line) }
	set.Habits(cli.LauncherHabits(), note)
	finishJob := func() error { return nil }
	if first {
		finishJob = o.jobFlags(set)
	}
	return set, func(argv []string) (program, error) {
		err := finishJob()
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
		p.env, err = exported(exports, getenv, note)
		return p, err
	}
}

// jobFlags declares the flags of the whole job, which stand before the first
// program. The function it returns applies their values.
func (o *options) jobFlags(set *cli.Set) func() error {
	var stdin string
	set.StringVar(&o.hostfile, "hostfile", "", "")
	set.Alias("hostfile", "machinefile")
	finishPlacement := o.placementFlags(set)
	set.BoolVar(&o.tag, "tag-output", false, "")
	set.BoolVar(&o.stamp, "timestamp-output", false, "")
	set.StringVar(&o.outputDir, "output-filename", "", "")
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
	set.BoolVar(&o.reportBindings, "report-bindings", false, "")
	set.BoolVarP(&o.quiet, "quiet", "q", false, "")
	set.BoolVarP(&o.verbose, "verbose", "v", false, "")
	set.BoolVar(&o.version, "version", false, "")
	finishTorch := o.torchFlags(set)
	o.recoveryFlags(set)
	return func() error {
		if err := finishTorch(); err != nil {
			return err
		}
		if err := finishPlacement(); err != nil {
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
