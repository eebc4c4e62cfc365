// Package cmdline reads the command line of gompirun into a plain Spec: its own flags, the habits
// of other launchers' users, torchrun's options, and the file of -app. It makes all checks that
// need no knowledge of the hosts. It starts nothing, and reads no files but the ones named on the
// line and the folders of -path.
package cmdline

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gompi/internal/cli"
	"gompi/mpirun/internal/plan"
)

// A Spec is a parsed command line: the programs, and the options of the whole job. Nothing
// changes it after Parse, so that goroutines may share it.
type Spec struct {
	Programs   []Program // in the order of the line
	Hostfile   string    // "-" for standard input, "" for none
	Policy     plan.Policy
	Standalone bool // this machine alone
	PerHost    PerHost
	Nodes      NodeRange // hosts to use; zero: all
	RunID      string    // -rdzv-id; "" for the job's own
	PortRange  string    // ports for the ranks to listen on, in the form of env.ParsePorts; "" for any
	Interfaces string    // for the ranks to use; "" for all

	Stdin     Stdin
	Timeout   time.Duration // of the job; 0 for none
	KillDelay time.Duration // between TERM and KILL
	Heartbeat time.Duration // 0: none

	VirtualLocalRank bool // LOCAL_RANK is 0 on all ranks, because each sees only its own GPU

	KeepChildren bool // processes left by ranks survive a job that ends well

	Rendezvous Rendezvous
	Master     Master
	Reach      Reach
	Preload    Preload
	Output     Output
	Report     Report
	Stats      Stats
	Stall      Stall
	Restart    Restart
	Recover    bool // a rank that dies does not end the job

	MPILib MPILib // of all programs

	Detach         bool // the job does not end with this gompirun
	Quiet, Verbose bool
	Version        bool // print it; nothing else counts
}

// A Program is a section of the command line between ":".
type Program struct {
	Argv  []string // with its interpreter, such as python3
	NP    int      // ranks; 0: all slots
	Hosts string   // -H; "" for none
	Wdir  string   // an absolute path; "" for gompirun's own
	Env   []string // NAME=value, of -x-all, then of -x
}

// Name is the program without its arguments and its interpreter, "" if there is none.
func (p *Program) Name() string {
	if len(p.Argv) == 0 {
		return ""
	}
	if script, _ := Script(p.Argv); script != "" {
		return script
	}
	return p.Argv[0]
}

// An MPILib is the library for MPI programs. By default programs of Open MPI use gompi's library,
// and programs of MPICH their own.
type MPILib string

const (
	MPIGompi MPILib = "gompi"
	MPIOwn   MPILib = "own"
)

// Stdin names the ranks that read standard input.
type Stdin struct {
	Rank int // -1 for none
	All  bool
}

// Takes reports whether a rank reads standard input.
func (s Stdin) Takes(rank int) bool { return s.All || s.Rank == rank }

// A Rendezvous is the meeting of nodes with a gompirun of their own each.
type Rendezvous struct {
	NodeRank int           // this node's; -1 if not given
	Endpoint string        // host:port or host; "" if not given
	LastCall time.Duration // how long a job with the least nodes waits for more
}

// A Master is the ranks' MASTER_ADDR and MASTER_PORT.
type Master struct {
	Addr string // "" if not given
	Port int    // 0 if not given
}

// Reach is the way to start agents on other hosts.
type Reach struct {
	RSH          string        // the login command; "" if not given
	LaunchAgent  string        // the command of an agent there; "" for ours
	StartTimeout time.Duration // 0 if not given
	Fanout       int           // most hosts started from one host; 0: all from here
}

// fanout is the default of Reach.Fanout.
const fanout = 64

// startTimeout is the default of Reach.StartTimeout.
const startTimeout = 30 * time.Second

// Limit returns the time for agents to start.
func (r Reach) Limit() time.Duration {
	if r.StartTimeout > 0 {
		return r.StartTimeout
	}
	return startTimeout
}

// Preload names files to copy to hosts that lack them.
type Preload struct {
	Binary bool   // the programs
	Files  string // separated by commas
}

// Output is the destination and the form of the ranks' output.
type Output struct {
	Tag, Stamp bool   // begin each line with its rank and stream, with the time
	Merge      bool   // a rank's stderr goes to its stdout
	Prefix     string // pattern at the beginning of each line
	Dir        string // for files of each rank; "" for none
	NoJobID    bool   // directly in Dir, not in a folder of the job
	NoCopy     bool   // not to the screen
	LocalRanks []int  // local ranks on each host whose output is shown; none: all
	Outfile    string // pattern of the file that takes stdout; "" for none
	Errfile    string // pattern of the file that takes stderr; "" for none
}

// A Report is gompirun's output about a job, and whether the job starts at all.
type Report struct {
	Map         bool // each rank's host, on stderr
	DoNotLaunch bool
	PID         string // where to write the process id: a file, "-" or "+"; "" for nowhere
	Bindings    bool
}

// Stats is the report on the calls of all ranks, written at the end.
type Stats struct {
	Table bool   // times by place
	File  string // for the table; "" for stderr
	Trace string // file for a trace of the calls; "" for none
}

// On reports whether ranks have to count their calls.
func (s *Stats) On() bool { return s.Table || s.Trace != "" }

// Stall is the report on ranks that wait for long.
type Stall struct {
	Warning time.Duration // until the report; 0: never
	Stacks  bool          // of ranks others wait for, and of all ranks at the time limit
}

// Restart is the user's permission to start a failed job again. Its program continues from its
// own checkpoints.
type Restart struct {
	Max   int // most restarts of all ranks after a failure
	MinNP int // least ranks for a restart after hosts are lost; 0: never
}

// A parser is the state of reading one command line.
type parser struct {
	spec    *Spec
	appFile string   // not read yet; "" for none
	forAll  []string // the values of -x-all in all parts
	before  []string // flags set by environment variables
	getenv  func(string) (string, bool)
	note    func(line string)
}

// Parse reads a command line, without the name of the command. getenv finds a variable of the
// environment; note gets complete lines for the user.
func Parse(args []string, getenv func(string) (string, bool), note func(line string)) (*Spec, error) {
	spec := &Spec{}
	p := &parser{spec: spec, getenv: getenv, note: note}
	var err error
	if p.before, err = p.variables(); err != nil {
		return nil, err
	}
	for i := 0; i == 0 || args != nil; i++ {
		next, err := p.part(args, i == 0)
		if err != nil {
			return nil, inPart(i, err)
		}
		if spec.Version {
			return spec, nil
		}
		args = next
	}
	vars, err := exported("-x-all", p.forAll, getenv, note)
	if err != nil {
		return nil, err
	}
	for i := range spec.Programs {
		spec.Programs[i].Env = slices.Concat(vars, spec.Programs[i].Env)
	}
	if err := spec.checkNodes(); err != nil {
		return nil, err
	}
	if err := spec.likeTorchrun(); err != nil {
		return nil, err
	}
	return spec, spec.checkDetach()
}

// checkDetach refuses a detached job that would need this terminal, or others' gompiruns.
func (s *Spec) checkDetach() error {
	switch {
	case s.Detach && s.Hostfile == "-":
		return errors.New("-detach and -hostfile -: want a file: the job has no standard input")
	case s.Detach && s.OneByOne():
		return errors.New("-detach and a gompirun on each node: want -hostfile or -H, from which one gompirun starts all")
	}
	return nil
}

// variables returns the flags for the environment variables of torchrun and Open MPI, to be read
// before typed flags, and reports them to the user in one line.
func (p *parser) variables() (flags []string, err error) {
	var names []string
	for _, v := range append(cli.TorchVariables(p.getenv), cli.MCAVariables(p.getenv)...) {
		err := v.Wrong
		if err == nil {
			err = p.try(v.Flag)
		}
		if err != nil {
			flag, _, _ := strings.Cut(v.Flag, "=")
			return nil, fmt.Errorf("%s=%q: %s", v.Name, v.Value,
				strings.TrimPrefix(err.Error(), fmt.Sprintf("%s %q: ", flag, v.Value)))
		}
		names, flags = append(names, v.Name), append(flags, v.Flag)
	}
	if len(names) > 0 {
		p.note("gompirun: " + strings.Join(slices.Compact(names), ", ") + ": as " + strings.Join(flags, " "))
	}
	return flags, nil
}

// part reads the flags of one program, and for the first program the flags of the job. It returns
// the arguments after ":", nil if there are none.
func (p *parser) part(args []string, first bool) (next []string, err error) {
	set, finish := p.flags(first)
	rest, err := set.Parse(args)
	if err == nil && p.appFile != "" {
		rest, err = p.readAppFile(set, rest)
	}
	switch {
	case err != nil:
		return nil, err
	case p.spec.Version:
		return nil, nil
	}
	argv, next := cutProgram(rest)
	if len(argv) > 0 {
		if err := slip(argv, first && len(rest) == len(args)); err != nil {
			return nil, err
		}
	}
	program, err := finish(argv)
	p.spec.Programs = append(p.spec.Programs, program)
	return next, err
}

// inPart names the program with wrong flags, if there are several programs. -h behind ":" tells of
// the job's flags, too.
func inPart(i int, err error) error {
	var asked *cli.HelpError
	switch {
	case i == 0:
		return err
	case errors.As(err, &asked):
		return &cli.HelpError{Help: Help(), All: asked.All}
	}
	return fmt.Errorf(`program %d, after ":": %w`, i+1, err)
}

// cutProgram cuts at the first argument that is exactly ":". next are the arguments after the
// cut, nil without one.
func cutProgram(args []string) (argv, next []string) {
	i := slices.Index(args, ":")
	if i < 0 {
		return args, nil
	}
	return args[:i], append([]string{}, args[i+1:]...)
}
