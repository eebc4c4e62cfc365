package cmdline

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/cli"
)

var psHelp = cli.Help{
	Synopsis: []string{"gompirun ps [-a] [-json | -prometheus] [JOB]"},
	About: `Lists your jobs that were started on this machine, or one of them, root all users',
and what their ranks are in. JOB is the end or the beginning of an id, or the process
of its gompirun. The ranks are not interrupted. Of jobs that are over, -a has the latest
100 (GOMPI_HISTORY=0: none is kept).`,
}

var topHelp = cli.Help{
	Synopsis: []string{"gompirun top [-once] [-interval T] [JOB]"},
	About: `Shows the ranks of your jobs, or of one, again and again until they have ended: in
which call each is and for how long, the processor time and the memory that it uses,
and its calls, bytes and time in calls by the second. Without -stats a job counts
collectives alone. If the output is no terminal, it is shown once.`,
}

var killHelp = cli.Help{
	Synopsis: []string{"gompirun kill [-signal NAME | -NAME | -NUMBER] JOB"},
	About: `Ends a job as the signal to its gompirun would, waits until it has ended, and prints
how. JOB is the end or the beginning of its id, or the process of its gompirun, as
"gompirun ps" prints them, or GOMPI_JOB_ID of any of its runs.`,
	Status: "0 if the job has ended, or has the signal; 125 if not.",
}

// Ps is the command line of gompirun ps.
type Ps struct {
	Job              string // "" for all
	Over             bool   // also jobs that are over
	JSON, Prometheus bool   // the form of the list
}

// ParsePs reads the command line of gompirun ps, without that word.
func ParsePs(args []string) (*Ps, error) {
	set := cli.New("gompirun ps")
	p := &Ps{}
	set.Help = psHelp
	set.Flag("a all", "", &p.Over, "list those that are over, too")
	set.Flag("json", "", &p.JSON, "print all that is known, as an array of jobs")
	set.Flag("prometheus", "", &p.Prometheus, "print it in Prometheus' text format")
	var err error
	p.Job, err = operand(set, args, "job")
	switch {
	case err == nil && p.JSON && p.Prometheus:
		err = errors.New("-json and -prometheus: want one of them")
	case err == nil && p.Over && p.Prometheus:
		err = errors.New("-a and -prometheus: metrics are of jobs that run")
	}
	return p, err
}

var logsHelp = cli.Help{
	Synopsis: []string{"gompirun logs [-f] [JOB]"},
	About: `Prints the last output of a job, up to 64 KiB as on its screen, with gompirun's own
lines: of the latest, or of JOB, as "gompirun ps -a" prints it, which may be over.`,
}

// Logs is the command line of gompirun logs.
type Logs struct {
	Job    string // "" for the latest
	Follow bool
}

// ParseLogs reads the command line of gompirun logs, without that word.
func ParseLogs(args []string) (*Logs, error) {
	set := cli.New("gompirun logs")
	l := &Logs{}
	set.Help = logsHelp
	set.Flag("f follow", "", &l.Follow, "then what it writes, until it has ended")
	var err error
	l.Job, err = operand(set, args, "job")
	return l, err
}

// Top is the command line of gompirun top.
type Top struct {
	Job      string // "" for all
	Once     bool
	Interval time.Duration
}

// ParseTop reads the command line of gompirun top, without that word.
func ParseTop(args []string) (*Top, error) {
	set := cli.New("gompirun top")
	t := &Top{Interval: time.Second}
	set.Help = topHelp
	set.Flag("once", "", &t.Once, "show it once")
	set.Flag("interval", "T", (*cli.Duration)(&t.Interval), "the time between two looks, in seconds or as 500ms "+
		"(default {})")
	var err error
	if t.Job, err = operand(set, args, "job"); err != nil {
		return nil, err
	}
	if t.Interval < shortestInterval {
		return nil, fmt.Errorf("-interval %v: want %v or more", t.Interval, shortestInterval)
	}
	return t, nil
}

const shortestInterval = 50 * time.Millisecond

// Kill is the command line of gompirun kill.
type Kill struct{ Job, Signal string }

// ParseKill reads the command line of gompirun kill, without that word. The signal is in capital
// letters, without SIG.
func ParseKill(args []string) (*Kill, error) {
	set := cli.New("gompirun kill")
	k := &Kill{Signal: "TERM"}
	set.Help = killHelp
	set.Flag("signal s", "NAME", &k.Signal, "{} (default), INT or HUP end the job in good order, KILL kills its ranks "+
		"at once; QUIT has it print what its ranks are in; USR1, USR2, ALRM and WINCH are handed on to them. NAME may be "+
		"a number, and -KILL and -9 do as for kill(1)")
	args = slices.Clone(args)
	for i, arg := range args {
		name, dashed := strings.CutPrefix(arg, "-")
		_, err := strconv.ParseUint(name, 10, 0)
		if dashed && (err == nil || unix.SignalNum("SIG"+signalName(name)) != 0) {
			args[i] = "-signal=" + name
		}
	}
	var err error
	if k.Job, err = operand(set, args, "job"); err != nil {
		return nil, err
	}
	k.Signal = signalName(k.Signal)
	return k, nil
}

// signalName returns the capital name of a signal, given by name or number, without SIG.
func signalName(text string) string {
	if n, err := strconv.Atoi(text); err == nil {
		text = cmp.Or(unix.SignalName(syscall.Signal(n)), text)
	}
	return strings.TrimPrefix(strings.ToUpper(text), "SIG")
}

// operand reads flags and the optional operand, "" if there is none.
func operand(set *cli.Set, args []string, what string) (string, error) {
	operands, err := set.ParseAll(args)
	switch {
	case err != nil:
		return "", err
	case len(operands) > 1:
		return "", fmt.Errorf("%q: want one %s (%s -h)", operands[1], what, set.Name())
	case len(operands) == 1:
		return operands[0], nil
	}
	return "", nil
}

var attachHelp = cli.Help{
	Synopsis: []string{"gompirun attach [-job ID] [-debugger CMD] RANK"},
	About: `Runs a debugger on a rank of a job that runs, on the rank's host: dlv for programs in
Go if it is there, else gdb. Type it on the machine where the job was started.`,
}

// Attach is a debugger to run on a rank of a running job.
type Attach struct {
	Rank     int
	Job      string // its id; "" for the only one
	Debugger string // a command; "" for dlv or gdb
}

// ParseAttach reads the command line of gompirun attach, without that word.
func ParseAttach(args []string) (*Attach, error) {
	set := cli.New("gompirun attach")
	a := &Attach{}
	set.Help = attachHelp
	set.Flag("job", "ID", &a.Job, "which job (default: the only one of yours)")
	set.Flag("debugger", "CMD", &a.Debugger, `another debugger: "CMD pid" is run on the rank's host`)
	operands, err := set.ParseAll(args)
	switch {
	case err != nil:
		return nil, err
	case len(operands) != 1:
		return nil, errors.New("want one rank (gompirun attach -h)")
	}
	if a.Rank, err = strconv.Atoi(operands[0]); err != nil || a.Rank < 0 {
		return nil, fmt.Errorf("%q: want a rank", operands[0])
	}
	return a, nil
}
