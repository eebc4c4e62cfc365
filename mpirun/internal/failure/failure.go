// Package failure is the failures of a job: their order in time, their words, and advice.
package failure

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/cli"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/plan"
)

// A Cause is a possible reason why a job failed.
type Cause struct {
	Status int    // of gompirun
	Text   string // "rank 2 on node7 exited with status 7 (pid 123)"
	Rank   int    // the rank that failed, or called Abort
	Tail   []byte // the end of the rank's stderr
	Frames string // of a crash, innermost first, a line each
	Where  string // the place of a crash's core
	Hint   string // how to find the place of a crash without frames
	Time   int64  // by its host's clock, nanoseconds since 1970; 0 if no rank is the cause
	Clock  *Clock // of the host of the rank
	Abort  bool   // the rank has called Abort
	Asked  int64  // first question about this rank, launcher's clock; 0: none, or its host knew of a failure
}

// Before reports whether c was certainly earlier than d. On one host its own clock decides.
// Between hosts the difference must exceed the uncertainty of their clocks. That suffices to
// distinguish a cause from its effects: a rank's end takes a round trip to reach other hosts.
//
// An agent without a processor dates the death of its rank too late. Other ranks see their
// connections to that rank break, wait for news of it, and at last fail. So the death precedes
// these failures. If the death is never reported, the loss of the agent precedes them.
func (c *Cause) Before(d *Cause) bool {
	if missed := c.missedBefore(d); missed != d.missedBefore(c) {
		return missed
	}
	if c.Time == 0 || d.Time == 0 || c.Clock == d.Clock {
		return c.Time != 0 && c.Time < d.Time
	}
	doubt := int64(c.Clock.round/2 + d.Clock.round/2)
	return c.Clock.Ours(c.Time)+doubt < d.Clock.Ours(d.Time)
}

// MissedTime is how long after a question about a rank other ranks may fail because of it: they
// wait half a second for news, and perhaps for a processor.
const MissedTime = 10 * time.Second

// missedBefore reports whether d, on another host, failed after a question about c's rank.
func (c *Cause) missedBefore(d *Cause) bool {
	if c.Asked == 0 || d.Time == 0 || c.Clock == d.Clock {
		return false
	}
	after := d.Clock.Ours(d.Time) - c.Asked
	return after >= 0 && after < int64(MissedTime)
}

// A Clock is the clock of a host, compared with the launcher's. The zero Clock is the launcher's.
type Clock struct {
	round  time.Duration // round trip of the fastest answer, 0 before the first
	offset int64         // the host's clock minus the launcher's
}

// Compare takes a host's answer by its clock to a question, whose times are the launcher's. The
// difference of the clocks comes from the fastest answer: its error is at most half of that round
// trip.
func (k *Clock) Compare(sent, answered, received int64) {
	round := time.Duration(received - sent)
	if round < 0 || k.round != 0 && round >= k.round {
		return
	}
	k.round = max(round, 1)
	k.offset = answered - (sent + int64(round)/2)
}

// Ours converts a time of the host's clock to the launcher's, so that failures on several hosts can
// be put in order.
func (k *Clock) Ours(t int64) int64 { return t - k.offset }

// HowEnded describes how a rank ended.
func HowEnded(m *ctl.Exited) string {
	switch {
	case m.Signal != 0:
		s := fmt.Sprintf("was killed by signal %d (%s)", m.Signal, signalName(m.Signal))
		if m.Core {
			s += ", core dumped"
		}
		if m.NoMemory {
			s += ", probably by the kernel for want of memory"
		}
		return s
	case m.Code == 0 && m.Joined && !m.Closed && m.Recorded != "":
		return "ended with status 0 although MPI_Finalize had failed"
	case m.Code == 0 && m.Joined && !m.Closed && m.MPI:
		return "ended with status 0 without calling MPI_Finalize"
	case m.Code == 0 && m.Joined && !m.Closed:
		return "ended with status 0 without closing its communicators"
	}
	return fmt.Sprintf("exited with status %d", m.Code)
}

func signalName(n int) string {
	if name := unix.SignalName(syscall.Signal(n)); name != "" {
		return name
	}
	switch rt := n - firstRealTime; {
	case rt == 0:
		return "SIGRTMIN"
	case rt > 0 && rt < 31:
		return fmt.Sprintf("SIGRTMIN+%d", rt)
	}
	return "unknown"
}

// firstRealTime is Linux's SIGRTMIN for programs: glibc keeps two for itself.
const firstRealTime = 34

// crashes are the signals that kill C, C++ or Fortran programs because of errors.
var crashes = []syscall.Signal{syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGABRT}

// IsCrash reports whether an error of its program has killed a rank.
func IsCrash(m *ctl.Exited) bool { return slices.Contains(crashes, syscall.Signal(m.Signal)) }

// WhereCrashed returns where the core of a rank's crash is, or how to find the place of the crash
// in the program, by the command line.
func WhereCrashed(m *ctl.Exited, argv []string) (where, hint string) {
	taker, piped := strings.CutPrefix(m.CoreFile, "|")
	switch {
	case piped && strings.Contains(taker, "systemd-coredump"):
		where = fmt.Sprintf("where it was: coredumpctl gdb %d", m.PID)
	case piped:
		where = fmt.Sprintf("its core went to %s", taker)
	case m.CoreFile != "":
		where = fmt.Sprintf("where it was: gdb -batch -ex bt %s", cli.Line(argv[0], m.CoreFile))
	default:
		hint = "to see where it is then: gompirun ... gdb -batch -ex run -ex bt --args " + cli.Line(argv...)
	}
	return where, hint
}

// remedies maps messages of programs about missing requirements to advice.
var remedies = []struct{ prints, helps string }{
	{"No module named gompi_torch", gompiTorch},        // python -m
	{"No module named 'gompi_torch'", gompiTorch},      // import
	{"runtime.schedinit()", addressSpace},              // the end of Go's stack, when its start fails
	{`\r’: No such file or directory`, carriageReturn}, // env, of a #! line
	{`\r': No such file or directory`, carriageReturn},
}

const carriageReturn = `the #! line of the program ends in a carriage return, as Windows writes it: ` +
	`sed -i 's/\r$//' FILE takes these away`

const addressSpace = "Go finds too little address space: ulimit -v of the host is to be unlimited, or 1 GiB more"

const gompiTorch = "this Python has no gompi_torch: " +
	"pip install gompi-*.whl, which make wheel puts into dist; see docs/pytorch.md"

// Remedy returns advice for a program with this last output, "" if there is none.
func Remedy(tail []byte) string {
	for _, r := range remedies {
		if bytes.Contains(tail, []byte(r.prints)) {
			return r.helps
		}
	}
	return ""
}

// A rankFailure is the failure of one rank.
type rankFailure struct {
	rank   int
	how    string // "exited with status 1"
	exited bool   // by itself, not by a signal
	cause  *Cause
}

// Others are the failures besides the cause of the job's end.
type Others struct {
	ranks  []rankFailure
	agents []*Cause // losses of agents
}

// AddRank adds the failure of a rank. exited states that it has ended by itself, not by a signal.
func (f *Others) AddRank(rank int, how string, exited bool, c *Cause) {
	f.ranks = append(f.ranks, rankFailure{rank, how, exited, c})
}

// AddAgent adds the loss of an agent.
func (f *Others) AddAgent(c *Cause) { f.agents = append(f.agents, c) }

// Lines describes the failures besides first, like ones in one line. The exit of a rank that has
// aborted the job is no further failure.
func (f *Others) Lines(first *Cause) []string {
	alike := map[string][]int{}
	var hows []string
	for _, r := range f.ranks {
		if r.cause == first || first != nil && first.Abort && r.exited && r.rank == first.Rank {
			continue
		}
		if alike[r.how] == nil {
			hows = append(hows, r.how)
		}
		alike[r.how] = append(alike[r.how], r.rank)
	}
	var lines []string
	for _, how := range hows {
		slices.Sort(alike[how])
		lines = append(lines, fmt.Sprintf("then: rank %s %s", plan.Ranges(slices.Compact(alike[how])), how))
	}
	for _, c := range f.agents {
		if c != first {
			lines = append(lines, "then: "+c.Text)
		}
	}
	return lines
}
