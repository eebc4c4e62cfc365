package cmdline

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"gompi/internal/cli"
	"gompi/internal/env"
	"gompi/mpirun/internal/pattern"
	"gompi/mpirun/internal/plan"
)

// flags declares the flags of one program, and for the first program the flags of the job. The
// function returned takes the arguments that Parse leaves, and returns the program.
func (p *parser) flags(first bool) (*cli.Set, func([]string) (Program, error)) {
	set := cli.New("gompirun")
	var own programFlags
	own.declare(set)
	set.Habits(cli.LauncherHabits, p.note)
	finishJob := func() error { return nil }
	if first {
		set.Environment(p.before, p.getenv)
		finishJob = p.jobFlags(set)
	}
	return set, func(argv []string) (Program, error) {
		err := finishJob()
		if err == nil {
			err = p.asSrunHasThem(set)
		}
		if err != nil {
			return Program{}, err
		}
		p.forAll = append(p.forAll, own.forAll...)
		return own.finish(argv, p.getenv, p.note)
	}
}

// asSrunHasThem notes letters with another meaning in srun, if the user may have meant that.
func (p *parser) asSrunHasThem(set *cli.Set) error {
	if c := set.Spelled("c"); c > 0 && set.Spelled("n")+set.Spelled("np") > c {
		return errors.New("-c and -n are both numbers of ranks; for srun's -c, cores of each rank, type -map-by :PE=N")
	}
	if _, inSlurm := p.getenv("SLURM_JOB_ID"); inSlurm && set.Spelled("N") > 0 && p.spec.Nodes.Most == 0 {
		p.note(fmt.Sprintf("gompirun: -N %v is ranks on each host; for srun's -N, a number of hosts, type -nnodes %[1]v", p.spec.PerHost))
	}
	return nil
}

// jobFlags declares the flags of the whole job, which stand before the first program. The
// function it returns applies their values.
func (p *parser) jobFlags(set *cli.Set) func() error {
	s := p.spec
	var stdin, mpiLib string
	s.hostfileFlag(set)
	set.StringVar(&p.appFile, "app", "", "")
	finishPlacement := s.placementFlags(set)
	s.Output.flags(set)
	set.StringVar(&stdin, "stdin", "0", "")
	set.Var((*cli.Duration)(&s.Timeout), "timeout", "")
	s.KillDelay = 10 * time.Second
	set.Var((*cli.Duration)(&s.KillDelay), "kill-delay", "")
	set.BoolVar(&s.KeepChildren, "no-kill-children", false, "")
	s.Stall.flags(set)
	s.Heartbeat = 5 * time.Second
	set.Var((*cli.Duration)(&s.Heartbeat), "heartbeat", "")
	s.Reach.flags(set)
	s.Reach.Fanout = fanout
	set.Var(cli.Number(&s.Reach.Fanout, 0, math.MaxInt32, "a whole number, 0 or more", "N"), "fanout", "")
	set.BoolVar(&s.Preload.Binary, "preload-binary", false, "")
	set.StringVar(&s.Preload.Files, "preload-files", "", "")
	s.networkFlags(set)
	set.StringVar(&mpiLib, "mpi-lib", "", "")
	s.Report.flags(set)
	s.Stats.flags(set)
	set.BoolVarP(&s.Quiet, "quiet", "q", false, "")
	set.BoolVarP(&s.Verbose, "verbose", "v", false, "")
	set.BoolVar(&s.Version, "version", false, "")
	s.torchFlags(set)
	set.Var(cli.Number(&s.Restart.Max, 0, math.MaxInt, "a whole number, 0 or more", "N"), "max-restarts", "")
	set.Var((*cli.Count)(&s.Restart.MinNP), "min-np", "")
	set.BoolVar(&s.Recover, "recover", false, "")
	set.Var(cli.Number(&s.Policy.Spares, 0, maxSpares, "a whole number from 0 to 64", "N"), "spares", "")
	return func() error {
		if s.Policy.Spares > 0 && !s.Recover {
			return errors.New("-spares: want -recover, too: without it a rank that dies ends the job")
		}
		for _, finish := range []func() error{s.finishTorch, finishPlacement, s.Output.finish, s.checkPorts} {
			if err := finish(); err != nil {
				return err
			}
		}
		if !set.Changed("timeout") {
			if err := p.timeLimit(); err != nil {
				return err
			}
		}
		var err error
		if s.Stdin, err = parseStdin(stdin); err != nil {
			return err
		}
		s.MPILib, err = p.mpiLib(mpiLib)
		return err
	}
}

// maxSpares bounds -spares: each spare takes doorbells and rings of all ranks on its host.
const maxSpares = 64

// hostfileFlag declares the flag that names the hosts.
func (s *Spec) hostfileFlag(set *cli.Set) {
	set.StringVar(&s.Hostfile, "hostfile", "", "")
}

// networkFlags declares the flags about the ranks' network.
func (s *Spec) networkFlags(set *cli.Set) {
	set.StringVar(&s.PortRange, "port-range", "", "")
	set.StringVar(&s.Interfaces, "iface", "", "")
}

func (s *Spec) checkPorts() error {
	if s.PortRange == "" {
		return nil
	}
	if _, _, err := env.ParsePorts(s.PortRange); err != nil {
		return fmt.Errorf("-port-range %w", err)
	}
	return nil
}

func parseStdin(s string) (Stdin, error) {
	switch s {
	case "all":
		return Stdin{All: true}, nil
	case "none":
		return Stdin{Rank: -1}, nil
	}
	if err := cli.TooLarge(s, plan.MaxRanks-1); err != nil {
		return Stdin{}, fmt.Errorf("-stdin %q: %w", s, err)
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return Stdin{}, fmt.Errorf("-stdin %q: want a rank, all or none", s)
	}
	return Stdin{Rank: n}, nil
}

// timeLimit takes the time limit from mpiexec's environment variable. -1 is none.
func (p *parser) timeLimit() error {
	value, _ := p.getenv(env.TimeLimit)
	if value == "" || value == "-1" {
		return nil
	}
	if err := (*cli.Duration)(&p.spec.Timeout).Set(value); err != nil {
		return fmt.Errorf("%s %q: %w", env.TimeLimit, value, err)
	}
	return nil
}

// mpiLib returns the library chosen by a flag or else by a variable.
func (p *parser) mpiLib(flag string) (MPILib, error) {
	name, value := "-mpi-lib", flag
	if flag == "" {
		name = env.MPILib
		value, _ = p.getenv(name)
	}
	switch lib := MPILib(value); lib {
	case "", MPIGompi, MPIOwn:
		return lib, nil
	}
	return "", fmt.Errorf("%s %q: want gompi or own", name, value)
}

func (r *Reach) flags(set *cli.Set) {
	set.StringVar(&r.RSH, "rsh", "", "")
	set.StringVar(&r.LaunchAgent, "launch-agent", "", "")
	set.Var((*cli.Duration)(&r.StartTimeout), "start-timeout", "")
}

func (s *Stall) flags(set *cli.Set) {
	s.Warning = 30 * time.Second
	set.Var((*cli.Duration)(&s.Warning), "stall-warning", "")
	set.BoolVar(&s.Stacks, "get-stack-traces", false, "")
}

func (r *Report) flags(set *cli.Set) {
	set.BoolVar(&r.Map, "display-map", false, "")
	set.BoolVar(&r.DoNotLaunch, "do-not-launch", false, "")
	set.StringVar(&r.PID, "report-pid", "", "")
	set.BoolVar(&r.Bindings, "report-bindings", false, "")
}

func (s *Stats) flags(set *cli.Set) {
	set.Var((*statsFlag)(s), "stats", "")
	set.Lookup("stats").NoOptDefVal = "-"
	set.StringVar(&s.Trace, "trace", "", "")
}

// A statsFlag is the value of -stats: a file, or "-" for stderr.
type statsFlag Stats

func (f *statsFlag) String() string { return f.File }
func (f *statsFlag) Type() string   { return "file" }
func (f *statsFlag) Set(value string) error {
	switch value {
	case "":
		return errors.New("want -stats, or the name of a file after =")
	case "-":
		value = ""
	}
	f.Table, f.File = true, value
	return nil
}

func (o *Output) flags(set *cli.Set) {
	set.BoolVar(&o.Tag, "tag-output", false, "")
	set.BoolVar(&o.Stamp, "timestamp-output", false, "")
	set.BoolVar(&o.Merge, "merge-stderr-to-stdout", false, "")
	set.StringVar(&o.Prefix, "prepend-pattern", "", "")
	set.StringVar(&o.Dir, "output-filename", "", "")
	set.StringVar(&o.Outfile, "outfile-pattern", "", "")
	set.StringVar(&o.Errfile, "errfile-pattern", "", "")
	set.IntSliceVar(&o.LocalRanks, "local-ranks-filter", nil, "")
}

// finish checks the flags about output, and applies the suffix of the folder.
func (o *Output) finish() error {
	for flag, p := range map[string]string{"prepend-pattern": o.Prefix, "outfile-pattern": o.Outfile, "errfile-pattern": o.Errfile} {
		if err := pattern.Check(p); err != nil {
			return fmt.Errorf("-%s %q: %w", flag, p, err)
		}
	}
	if o.Dir != "" && o.Outfile+o.Errfile != "" {
		return errors.New("-output-filename, and -outfile-pattern or -errfile-pattern: want one of them")
	}
	return o.setDir()
}

// setDir applies the suffix of -output-filename's folder: ":nocopy", ":nojobid", or both.
func (o *Output) setDir() error {
	dir, how, found := strings.Cut(o.Dir, ":")
	if !found {
		return nil
	}
	for word := range strings.SplitSeq(how, ",") {
		switch strings.ToLower(word) {
		case "nocopy":
			o.NoCopy = true
		case "nojobid":
			o.NoJobID = true
		default:
			return fmt.Errorf("-output-filename %q: %q: want nocopy, nojobid or both after the colon", o.Dir, word)
		}
	}
	if dir == "" {
		return errors.New("-output-filename: want a folder before the colon")
	}
	o.Dir = dir
	return nil
}
