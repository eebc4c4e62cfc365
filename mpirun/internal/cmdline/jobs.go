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

// PsUsage is the output of gompirun ps -h.
const PsUsage = `usage: gompirun ps [-json | -prometheus] [JOB]

Lists your jobs that were started on this machine, or one of them, root all users',
and what their ranks are in. JOB is the end or the beginning of an id, or the process
of its gompirun. The ranks are not interrupted.

  -json                     print all that is known, as an array of jobs
  -prometheus               print it in Prometheus' text format
`

// TopUsage is the output of gompirun top -h.
const TopUsage = `usage: gompirun top [-once] [-interval T] [JOB]

Shows the ranks of your jobs, or of one, again and again until they have ended: in
which call each is and for how long, the processor time and the memory that it uses,
and its calls, bytes and time in calls by the second. Without -stats a job counts
collectives alone. If the output is no terminal, it is shown once.

  -once                     show it once
  -interval T               the time between two looks, in seconds or as 500ms (default 1)
`

// KillUsage is the output of gompirun kill -h.
const KillUsage = `usage: gompirun kill [-signal NAME | -NAME | -NUMBER] JOB

Ends a job as the signal to its gompirun would, waits until it has ended, and prints
how. JOB is the end or the beginning of its id, or the process of its gompirun, as
"gompirun ps" prints them, or GOMPI_JOB_ID of any of its runs.

  -signal NAME, -s NAME     TERM (default), INT or HUP end the job in good order, KILL
                            kills its ranks at once; QUIT has it print what its ranks
                            are in; USR1, USR2, ALRM and WINCH are handed on to them.
                            NAME may be a number, and -KILL and -9 do as for kill(1)

Exit status: 0 if the job has ended, or has the signal; 125 if not.
`

// A JobsForm is the form of gompirun ps's output.
type JobsForm int

// The forms.
const (
	JobsTable JobsForm = iota
	JobsJSON
	JobsPrometheus
)

// Ps is the command line of gompirun ps.
type Ps struct {
	Job  string // "" for all
	Form JobsForm
}

// ParsePs reads the command line of gompirun ps, without that word. The error cli.ErrHelp asks
// for PsUsage.
func ParsePs(args []string) (*Ps, error) {
	set := cli.New("gompirun ps")
	p := &Ps{}
	var inJSON, prometheus bool
	set.BoolVar(&inJSON, "json", false, "")
	set.BoolVar(&prometheus, "prometheus", false, "")
	var err error
	p.Job, err = jobOperand(set, args)
	switch {
	case err != nil:
		return nil, err
	case inJSON && prometheus:
		return nil, errors.New("-json and -prometheus: want one of them")
	case inJSON:
		p.Form = JobsJSON
	case prometheus:
		p.Form = JobsPrometheus
	}
	return p, nil
}

// Top is the command line of gompirun top.
type Top struct {
	Job      string // "" for all
	Once     bool
	Interval time.Duration
}

// ParseTop reads the command line of gompirun top, without that word. The error cli.ErrHelp asks
// for TopUsage.
func ParseTop(args []string) (*Top, error) {
	set := cli.New("gompirun top")
	t := &Top{Interval: time.Second}
	set.BoolVar(&t.Once, "once", false, "")
	set.Var((*cli.Duration)(&t.Interval), "interval", "")
	var err error
	if t.Job, err = jobOperand(set, args); err != nil {
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
// letters, without SIG. The error cli.ErrHelp asks for KillUsage.
func ParseKill(args []string) (*Kill, error) {
	set := cli.New("gompirun kill")
	k := &Kill{}
	set.StringVarP(&k.Signal, "signal", "s", "TERM", "")
	args = slices.Clone(args)
	for i, arg := range args {
		name, dashed := strings.CutPrefix(arg, "-")
		_, err := strconv.ParseUint(name, 10, 0)
		if dashed && (err == nil || unix.SignalNum("SIG"+signalName(name)) != 0) {
			args[i] = "-signal=" + name
		}
	}
	var err error
	if k.Job, err = jobOperand(set, args); err != nil {
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

// jobOperand reads flags and the optional operand, a job, "" if there is none.
func jobOperand(set *cli.Set, args []string) (string, error) {
	operands, err := set.ParseAll(args)
	switch {
	case err != nil:
		return "", err
	case len(operands) > 1:
		return "", fmt.Errorf("%q: want one job (%s -h)", operands[1], set.Name())
	case len(operands) == 1:
		return operands[0], nil
	}
	return "", nil
}
