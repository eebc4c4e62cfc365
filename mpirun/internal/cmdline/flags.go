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
	"gompi/mpirun/internal/plan"
)

// flags declares the flags of one program, and for the first program the flags of the job. The
// function returned takes the arguments that Parse leaves, and returns the program.
func (p *parser) flags(first bool) (*cli.Set, func([]string) (Program, error)) {
	set := cli.New("gompirun")
	set.Help = jobHelp
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
	stdin, mpiLib := "0", ""
	s.hostfileFlag(set)
	finishPlacement := s.placementFlags(set)
	set.Group = "program"
	set.Flag("app", "F", &p.appFile, `the programs stand in F, a line for each, as between ":"`)
	s.torchFlags(set)
	s.networkFlags(set)
	set.Group = "MPI programs"
	set.Flag("mpi-lib", "gompi|own", &mpiLib, "the library on which they run (default: those of Open MPI on gompi's, "+
		"those of MPICH and Intel MPI on their own)")
	s.Reach.flags(set)
	s.agentFlags(set)
	set.Group = "input and output"
	set.Flag("stdin", "RANK|all|none", &stdin, "the rank that reads standard input (default: rank {})|; on this "+
		"machine it has that itself, unless it is a terminal, and what it does not read is left")
	s.Output.flags(set)
	s.endFlags(set)
	s.Stall.flags(set)
	s.Stats.flags(set)
	s.Report.flags(set)
	set.Flag("detach", "", &s.Detach, `print the job's id once its ranks run, and leave it running, without the `+
		`terminal or standard input: "gompirun logs -f" shows its output, "gompirun kill" ends it`)
	set.Flag("q quiet", "", &s.Quiet, "print nothing but the reason of a failure")
	set.Flag("v verbose", "", &s.Verbose, "print what gompirun does")
	set.Flag("version", "", &s.Version, `print the version, as "gompirun version" does`)
	set.Flag("h", "", nil, `print the flags that most users need, -h all these; also "gompirun help [all]"`)
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
	set.Group = "ranks and hosts"
	set.Flag("hostfile", "F", &s.Hostfile, `hosts and their slots, one to a line: "node01 slots=4" (default: what `+
		"the batch system has granted, else here)|; where Slurm, PBS, LSF or Grid Engine has granted hosts, these lists "+
		"choose from them")
}

// networkFlags declares the flags about the ranks' network.
func (s *Spec) networkFlags(set *cli.Set) {
	set.Group = "network"
	set.Flag("port-range", "LO-HI", &s.PortRange, "ports for the ranks to listen on (default: any)")
	set.Flag("iface", "LIST", &s.Interfaces, "interfaces and subnets for the ranks to use, those after ^ not: "+
		"eth0,10.0.0.0/8,^docker0 (default: all)")
}

// agentFlags declares the flags about agents and files on other hosts, beside those of Reach.
func (s *Spec) agentFlags(set *cli.Set) {
	s.Reach.Fanout = fanout
	hosts := cli.Number(&s.Reach.Fanout, 0, math.MaxInt32, "a whole number, 0 or more", "N")
	set.Flag("fanout", "N", hosts, "from how many hosts on some start others, so that gompirun need not log in to all "+
		"(default {}; 0: it does)")
	set.Flag("preload-binary", "", &s.Preload.Binary, "send programs to hosts that do not have them")
	set.Flag("preload-files", "LIST", &s.Preload.Files, "put copies of these files, a,b, into the ranks' working "+
		"directory on other hosts")
}

// endFlags declares the flags about failures and the end of the job.
func (s *Spec) endFlags(set *cli.Set) {
	s.KillDelay, s.Heartbeat = 10*time.Second, 5*time.Second
	set.Group = "ending"
	set.Flag("timeout", "T", (*cli.Duration)(&s.Timeout), "end the job after T seconds, or 90s, 2m, 1h30m|")
	set.Flag("kill-delay", "T", (*cli.Duration)(&s.KillDelay), "time between TERM and KILL (default {}); Ctrl-C sends "+
		"the ranks INT, and TERM 2 seconds later; once more kills at once")
	set.Flag("no-kill-children", "", &s.KeepChildren,
		"what ranks have left running, as daemons, lives on when the job "+
			"has ended well (else it is killed)")
	restarts := cli.Number(&s.Restart.Max, 0, math.MaxInt, "a whole number, 0 or more", "N")
	set.Flag("max-restarts", "N", restarts, "start all ranks again, up to N times, if one fails| (default {}); the "+
		"program continues from what it has saved")
	set.Flag("recover", "", &s.Recover, "a rank that dies does not end the job: the others may continue without it, by "+
		"comm.Shrink (docs/recovery.md)")
	spares := cli.Number(&s.Policy.Spares, 0, maxSpares, "a whole number from 0 to 64", "N")
	set.Flag("spares", "N", spares, "with -recover: up to N ranks of each host that died may be replaced by new "+
		"processes, by comm.Restore (default {})")
	set.Flag("min-np", "M", (*cli.Count)(&s.Restart.MinNP), "when a host is lost, start again on the others, if they "+
		"had M ranks or more")
	set.Flag("heartbeat", "T", (*cli.Duration)(&s.Heartbeat), "say when nothing has come of another host for T "+
		"(default {}, 0: never); after 3 T it is lost")
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
	set.Group = "other hosts"
	set.Flag("rsh", "CMD", &r.RSH, `what logs in to other hosts (default: ssh)|, as "ssh -p 2222 -i key"`)
	set.Flag("launch-agent", "CMD", &r.LaunchAgent, "what runs a gompirun there (default: this one, found at the same "+
		"path, or sent)")
	set.Flag("start-timeout", "T", (*cli.Duration)(&r.StartTimeout), "how long they may take to start (default "+
		startTimeout.String()+"; nodes that are started one by one wait 10m for each other); if given, hosts that refuse "+
		"or do not resolve are tried again")
}

func (s *Stall) flags(set *cli.Set) {
	s.Warning = 30 * time.Second
	set.Group = "what happens"
	set.Flag("stall-warning", "T", (*cli.Duration)(&s.Warning), "say which ranks wait for which when ranks have been "+
		"in one call for T (default {}, 0: never); QUIT asks for the same")
	set.Flag("get-stack-traces", "", &s.Stacks,
		"print stacks, too: with -stall-warning those of the ranks that others "+
			"wait for, at the time limit those of all: of programs in Go, Python and C, of which gdb shows more")
}

func (r *Report) flags(set *cli.Set) {
	set.Flag("display-map", "", &r.Map, "print which rank runs where|")
	set.Flag("do-not-launch", "", &r.DoNotLaunch, "find out which rank would run where, and start none")
	set.Flag("report-pid", "F", &r.PID, "write gompirun's process id to F, or - (stdout), + (stderr)")
	set.Flag("report-bindings", "", &r.Bindings, "print which CPUs and GPUs each rank has|, the CPUs as bound by the "+
		"kernel")
}

func (s *Stats) flags(set *cli.Set) {
	set.Flag("stats", "[=F]", (*statsFlag)(s), "at the end, print what the calls of all ranks took, by place in the "+
		"program, and which rank was late; or write it to F, as F.json, .html, .csv or else text (docs/observe.md)")
	set.Lookup("stats").NoOptDefVal = "-"
	set.Flag("trace", "F", &s.Trace, "write the latest calls of all ranks to F, for ui.perfetto.dev")
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
	set.Flag("tag-output", "", &o.Tag, "begin each line of output with its rank|: [rank]<stdout>: or [rank]<stderr>:")
	set.Flag("timestamp-output", "", &o.Stamp, "begin each line with the time")
	set.Flag("prepend-pattern", "P", &o.Prefix, "begin each line with P, where %r is the rank, %l its number on its "+
		"host, %h the host, %p the number of that, %t the second since 1970")
	set.Flag("local-ranks-filter", "LIST", &o.LocalRanks, "show the output of these ranks of each host alone, as 0,1; "+
		"files get that of all")
	set.Flag("merge-stderr-to-stdout", "", &o.Merge, "stderr of a rank goes where its stdout goes")
	set.Flag("output-filename", "DIR", &o.Dir, "write the output of each rank to a file, too|, in DIR/1/rank.0/stdout "+
		"and so on, 2 for a second run (-max-restarts); after it :nocopy (to the file alone) or :nojobid "+
		"(DIR/rank.0/stdout). Files that are there are overwritten; further runs continue those of the first, and of "+
		"patterns")
	set.Flag("outfile-pattern", "P", &o.Outfile, "write each rank's stdout to the file P alone, where %r and so on "+
		"stand for the same; folders are made")
	set.Flag("errfile-pattern", "P", &o.Errfile, "as -outfile-pattern, for stderr")
}

// finish checks the flags about output, and applies the suffix of the folder.
func (o *Output) finish() error {
	for flag, p := range map[string]string{"prepend-pattern": o.Prefix, "outfile-pattern": o.Outfile,
		"errfile-pattern": o.Errfile} {
		if err := plan.CheckPattern(p); err != nil {
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
