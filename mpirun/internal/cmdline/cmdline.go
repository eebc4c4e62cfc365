// Package cmdline reads the command line of gompirun to a plain Spec: its own flags,
// the habits of other launchers' users, the words of torchrun, and the file of -app. It
// checks what can be checked without knowing the hosts. It starts nothing, and reads no
// files but those that the line names and the folders of -path.
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

// A Spec is a command line, read: the programs, and what holds for the whole job. Parse
// returns it complete; it is not changed afterwards, so that goroutines may share it.
type Spec struct {
	Programs   []Program // in the order of the line
	Hostfile   string    // "-" for standard input, "" for none
	Policy     plan.Policy
	Standalone bool // this machine alone
	PerHost    PerHost
	Nodes      NodeRange // hosts to use; the zero range for all
	RunID      string    // -rdzv-id; "" for the job's own
	PortRange  string    // for the ranks to listen on, as env.ParsePorts reads it; "" for any
	Interfaces string    // for the ranks to use; "" for all

	Stdin     Stdin
	Timeout   time.Duration // of the job; 0 for none
	KillDelay time.Duration // between TERM and KILL
	Heartbeat time.Duration // 0: none

	VirtualLocalRank bool // LOCAL_RANK is 0 on all ranks, as the number of a GPU of its own

	KeepChildren bool // what ranks have left running lives on when the job ends well

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

	Quiet, Verbose bool
	Version        bool // print it; nothing else counts
}

// A Program is one part of the command line between ":".
type Program struct {
	Argv  []string // what runs it included, as python3
	NP    int      // ranks; 0: all slots
	Hosts string   // -H; "" for none
	Wdir  string   // an absolute path; "" for that of gompirun
	Env   []string // NAME=value, of -x-all and then of -x
}

// Name is the program without its arguments and what runs it, "" if there is none.
func (p *Program) Name() string {
	if len(p.Argv) == 0 {
		return ""
	}
	if script, _ := Script(p.Argv); script != "" {
		return script
	}
	return p.Argv[0]
}

// An MPILib is the library on which MPI programs run. Without a choice those of Open MPI run on
// gompi's, and those of MPICH on their own.
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

// Takes reports whether a rank is among them.
func (s Stdin) Takes(rank int) bool { return s.All || s.Rank == rank }

// A Rendezvous is how nodes meet of which each has a gompirun started on it.
type Rendezvous struct {
	NodeRank int           // which node this is; -1 if not given
	Endpoint string        // host:port or host; "" if not given
	LastCall time.Duration // how long a job that has the least nodes waits for more
}

// A Master is what MASTER_ADDR and MASTER_PORT mean to the ranks.
type Master struct {
	Addr string // "" if not given
	Port int    // 0 if not given
}

// Reach is how other hosts are reached.
type Reach struct {
	RSH          string        // the command that logs in; "" if not given
	LaunchAgent  string        // the command that runs an agent there; "" for ours
	StartTimeout time.Duration // 0 if not given
	Fanout       int           // hosts that are started from one at most; 0 for all from this
}

// fanout is how many hosts gompirun starts itself, where the user states nothing.
const fanout = 64

// startTimeout holds where the user sets none.
const startTimeout = 30 * time.Second

// Limit returns how long agents may take to start.
func (r Reach) Limit() time.Duration {
	if r.StartTimeout > 0 {
		return r.StartTimeout
	}
	return startTimeout
}

// Preload is what is brought to hosts that do not have it.
type Preload struct {
	Binary bool   // the programs
	Files  string // separated by commas
}

// Output is where the output of ranks goes, and how it looks.
type Output struct {
	Tag, Stamp bool   // begin each line with its rank and stream, with the time
	Merge      bool   // stderr of a rank goes where its stdout goes
	Prefix     string // pattern of what each line begins with
	Dir        string // of files of each rank; "" for none
	NoJobID    bool   // directly in Dir, not in a folder of the job
	NoCopy     bool   // to the files alone
	LocalRanks []int  // of each host, that are shown on the screen; none: all
	Outfile    string // pattern of the file that takes stdout; "" for none
	Errfile    string // the same of stderr
}

// A Report is what gompirun prints of a job, and whether that is all it does.
type Report struct {
	Map         bool // which rank runs where, on stderr
	DoNotLaunch bool
	PID         string // where the process id goes: a file, "-" or "+"; "" for nowhere
	Bindings    bool
}

// Stats is what is written of the calls of all ranks when the job is over.
type Stats struct {
	Table bool   // what they took, by place
	File  string // where that goes; "" for stderr
	Trace string // the file for the calls themselves; "" for none
}

// On reports whether ranks have to count their calls.
func (s *Stats) On() bool { return s.Table || s.Trace != "" }

// Stall is what is reported of ranks that wait for long.
type Stall struct {
	Warning time.Duration // after which they are reported; 0: never
	Stacks  bool          // of those that others wait for, and at the time limit of all
}

// Restart is what the user allows when a job fails: to begin again, its program from
// what it has saved.
type Restart struct {
	Max   int // times that all ranks are started again because one has failed
	MinNP int // ranks with which the job continues if hosts are lost; 0: it ends
}

// A parser is the reading of one command line.
type parser struct {
	spec    *Spec
	appFile string   // to be read yet; "" for none
	forAll  []string // the values of -x-all in all parts
	before  []string // the flags for which variables stand
	getenv  func(string) (string, bool)
	note    func(line string)
}

// Parse reads a command line, without the name of the command. getenv finds a variable of the
// environment; note gets, in complete lines, what the user should know. An error that is
// cli.ErrHelp asks for Usage, or for UsageAll if it is cli.ErrHelpAll.
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
	return spec, nil
}

// variables returns the flags for which variables of torchrun and Open MPI stand, to be read before
// those that are typed, and reports them to the user in one line.
func (p *parser) variables() (flags []string, err error) {
	var names []string
	for _, v := range append(cli.TorchVariables(p.getenv), cli.MCAVariables(p.getenv)...) {
		err := v.Wrong
		if err == nil {
			err = p.try(v.Flag)
		}
		if err != nil {
			flag, _, _ := strings.Cut(v.Flag, "=")
			return nil, fmt.Errorf("%s=%q: %s", v.Name, v.Value, strings.TrimPrefix(err.Error(), fmt.Sprintf("%s %q: ", flag, v.Value)))
		}
		names, flags = append(names, v.Name), append(flags, v.Flag)
	}
	if len(names) > 0 {
		p.note("gompirun: " + strings.Join(slices.Compact(names), ", ") + ": as " + strings.Join(flags, " "))
	}
	return flags, nil
}

// part reads the flags of one program, and for the first those of the job, and the
// program. It returns what follows behind ":", nil if nothing does.
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
