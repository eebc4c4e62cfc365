package mpirun

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/boot/wire"
	"gompi/mpirun/internal/agent"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/tree"
)

// Exit statuses of gompirun's own.
const (
	statusNothing = 1 // no arguments at all
	statusTimeout = 124
	statusFailed  = 125
)

// agentPatience is how long agents may take to end when they have nothing left
// to do: longer than they try to kill what does not die.
const agentPatience = 10 * time.Second

// A cause is why a job ended, if not well.
type cause struct {
	status int
	text   string // "rank 2 on node7 exited with status 7 (pid 123)"
	tail   []byte // the end of the rank's stderr
	time   int64  // when by its host's clock, nanoseconds since 1970; 0 for what is no rank's doing
	link   *link  // to that host
}

// before reports whether c was certainly earlier than d. What the end of a rank
// does to ranks of other hosts comes later, but by less than their clocks are
// known. On one host it is its own clock that counts: what is known of the
// difference to ours may have changed from one to the other.
func (c *cause) before(d *cause) bool {
	if c.time == 0 || d.time == 0 || c.link == d.link {
		return c.time != 0 && c.time < d.time
	}
	doubt := int64(c.link.round/2 + d.link.round/2)
	return c.link.ours(c.time)+doubt < d.link.ours(d.time)
}

// An ending is how far the end of a job has come.
type ending struct {
	cause      *cause // the first, nil while all is well
	interrupts int    // signals that asked for an end
	bereft     bool   // an agent was lost: look for what it left
	lastWords  string // what is said when all is over
	reader
	sequel
}

// end ends the job because of c, unless it is ending already. Of two failures
// the earlier one is the cause, whichever was heard of first.
func (j *job) end(c *cause) {
	if j.cause != nil {
		if c.before(j.cause) {
			j.cause = c
		}
		return
	}
	j.cause = c
	j.looks = time.Tick(readerLook)
	j.verbosef("ending the job: %s", c.text)
	j.broadcast(&ctl.Terminate{Delay: max(j.spec.KillDelay, 1), Text: clip(c.text)})
}

func clip(s string) string { return s[:min(len(s), wire.MaxText)] }

// exited notes that a rank's process has ended.
func (j *job) exited(l *link, m *ctl.Exited) {
	j.verbosef("rank %d on %s %s (pid %d, %d MiB)", m.Rank, l.host, howEnded(m), m.PID, m.RSS>>20)
	if m.Code == 0 && m.Signal == 0 && m.Joined == m.Closed {
		if !m.Joined || m.PMI {
			j.broadcast(&ctl.Absent{Rank: m.Rank}) // others may wait for it, in Init or in a barrier of PMI
		}
		return
	}
	how := howEnded(m)
	j.broadcast(&ctl.Died{Rank: m.Rank, Text: fmt.Sprintf("%s (pid %d)", how, m.PID)})
	status := m.Code
	switch {
	case m.Signal != 0:
		status = 128 + m.Signal
	case status == 0:
		status = 1
	}
	c := &cause{
		status: status,
		text:   fmt.Sprintf("rank %d on %s %s (pid %d)", m.Rank, l.host, how, m.PID),
		tail:   m.Tail, time: m.Time, link: l,
	}
	j.failedToo(m, how, c)
	j.end(c)
}

// howEnded says how a rank ended.
func howEnded(m *ctl.Exited) string {
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
	case m.Code == 0 && m.Joined && !m.Closed && m.PMI:
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
	return "unknown"
}

// aborted ends the job because a rank wants that. A status that would look like
// success to a shell becomes 1.
func (j *job) aborted(l *link, m *ctl.Abort) {
	status := m.Code & 0xff
	if status == 0 {
		status = 1
	}
	text := fmt.Sprintf("rank %d on %s aborted the job with status %d", m.Rank, l.host, m.Code)
	if m.Reason != "" {
		text += ": " + strings.TrimRight(m.Reason, "\n")
	}
	j.end(&cause{status: status, text: text, time: m.Time, link: l})
}

// failed ends the job because a rank could not be started.
func (j *job) failed(l *link, m *ctl.Failed) {
	j.end(&cause{status: m.Code, text: fmt.Sprintf("rank %d on %s: %s", m.Rank, l.host, m.Text)})
}

// lost notes the end of a channel. Before the agent was done it is a failure,
// and what the agent ran is ended from here: its ranks die with it, and what
// they have started has been adopted by this process.
func (j *job) lost(l *link, err error) {
	how := l.ended(err)
	if l.drained {
		return
	}
	l.drained = true
	j.watch.Gone(l)
	j.missing = append(j.missing, l.index)
	j.bereft = true
	j.sweep()
	c := &cause{status: statusFailed, text: fmt.Sprintf("the agent on %s %s, and %s with it",
		l.host, how, ranksText(l.ranks))}
	if !l.given {
		j.sequel.lost = append(j.sequel.lost, c.text)
	}
	j.end(c)
}

// ranksText names a host's ranks.
func ranksText(ranks []int) string {
	switch len(ranks) {
	case 0:
		return "no rank"
	case 1:
		return fmt.Sprintf("rank %d", ranks[0])
	}
	return fmt.Sprintf("%d ranks from %d to %d", len(ranks), ranks[0], ranks[len(ranks)-1])
}

// sweep kills what lost agents have left below this process. What was there
// before the job is none of its business: a shell may have started something
// and then become gompirun.
func (j *job) sweep() {
	living := func(pid int) bool {
		isAgent := func(l *link) bool { return l.agent != nil && l.agent.PID() == pid }
		return slices.Contains(j.before, pid) || slices.ContainsFunc(j.links, isAgent)
	}
	sweepBelow(living)
	for _, l := range j.links {
		if l.agent != nil {
			agent.RemovePen(l.agent.PID())
		}
	}
}

// sweepBelow kills everything below this process but for the living.
func sweepBelow(living func(pid int) bool) {
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if n, err := tree.Signal(syscall.SIGKILL, living); n == 0 || err != nil {
			return
		}
	}
}

// endAgents closes all channels and waits until the agents are gone.
func (j *job) endAgents() {
	for _, l := range j.links {
		l.close()
	}
	late := time.AfterFunc(agentPatience, func() {
		for _, l := range j.links {
			l.kill()
		}
	})
	defer late.Stop()
	for _, l := range j.links {
		l.await(j.events)
	}
	if j.bereft {
		j.sweep()
	}
}

// failToStart ends what has been started and says why there is no job.
func (j *job) failToStart(err error) int {
	j.end(&cause{status: statusFailed, text: err.Error()})
	j.endAgents()
	return j.conclude()
}

// timeUp ends the job because its time limit is reached.
func (j *job) timeUp(when string) {
	j.hurried = true
	j.end(&cause{status: statusTimeout, text: fmt.Sprintf("time limit of %v reached%s", j.spec.Timeout, when)})
}

// conclude writes what is left of the output, says why the job ended, and returns
// its exit status. The agents are gone.
func (j *job) conclude() int {
	j.flush()
	j.unwritten = j.out.Err()
	if j.unwritten != nil && j.cause == nil {
		j.end(&cause{status: statusFailed, text: fmt.Sprintf("all ranks ended well, but output is lost: %v", j.unwritten)})
		j.unwritten = nil
	}
	status := 0
	if j.cause != nil {
		j.secondChance()
		status = j.cause.status
		j.report()
		j.flush()
	}
	j.signals.release()
	j.out.Close()
	return status
}

// report says why the job ended.
func (j *job) report() {
	var b bytes.Buffer
	lead := "gompirun: " + j.comes
	for line := range strings.Lines(strings.TrimRight(j.cause.text, "\n")) {
		fmt.Fprintf(&b, "%s%s\n", lead, strings.TrimRight(line, "\n"))
		lead = "gompirun: "
	}
	for line := range bytes.Lines(bytes.TrimRight(j.cause.tail, "\n")) {
		fmt.Fprintf(&b, "  | %s\n", bytes.TrimRight(line, "\n"))
	}
	for _, line := range j.then(j.cause) {
		fmt.Fprintf(&b, "gompirun: %s\n", line)
	}
	if j.unwritten != nil {
		fmt.Fprintf(&b, "gompirun: output is lost: %v\n", j.unwritten)
	}
	if n, files := j.out.Lost(); n > 0 {
		fmt.Fprintf(&b, "gompirun: output is lost that was not read for %v: %d bytes", j.readerTime(), n)
		if len(files) > 0 {
			fmt.Fprintf(&b, ", for %s", clip(strings.Join(files, ", ")))
		}
		b.WriteByte('\n')
	}
	j.lastWords = b.String()
	j.out.Say(j.lastWords)
}
