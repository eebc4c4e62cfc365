package job

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/world"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/link"
)

// Exit statuses of gompirun's own.
const (
	StatusTimeout = 124
	StatusFailed  = 125
)

const (
	// agentEndTime is how long agents may take to end when they have nothing left to do, and beyond
	// the kill delay when a signal or the time limit ends the job. It is longer than they try to
	// kill processes that do not die.
	agentEndTime = 7 * time.Second
	// killTime is how long agents that have been killed may take to end.
	killTime = 2 * time.Second
)

// A cause is why a job ended, if not well.
type cause struct {
	status int
	text   string // "rank 2 on node7 exited with status 7 (pid 123)"
	rank   int    // that failed, or has called Abort
	tail   []byte // the end of the rank's stderr
	where  string // how to see where in its program it was
	time   int64  // when by its host's clock, nanoseconds since 1970; 0 for what is no rank's doing
	host   *host  // that host
	abort  bool   // it has called Abort
	asked  int64  // when others asked about this rank, or one of a lost agent, by the launcher's clock; 0: none did, or its host knew of a failure
}

// before reports whether c was certainly earlier than d. On one host its own clock decides. Between
// hosts the difference must be larger than their clocks are uncertain. That suffices to distinguish
// a cause from its effects: a rank's end takes a round trip to reach other hosts.
//
// It is different if an agent does not get to run when a rank of its host dies. Other ranks see
// their connections to that rank break, wait for news of it, and at last fail. So the death is the
// cause, although the agent dates it later; or the loss of the agent is, if it never reports it.
func (c *cause) before(d *cause) bool {
	if missed := c.missedBefore(d); missed != d.missedBefore(c) {
		return missed
	}
	if c.time == 0 || d.time == 0 || c.host == d.host {
		return c.time != 0 && c.time < d.time
	}
	doubt := int64(c.host.pulse.round/2 + d.host.pulse.round/2)
	return c.host.pulse.ours(c.time)+doubt < d.host.pulse.ours(d.time)
}

// missedTime is how long after a rank was asked about others may fail for it: they wait half a
// second for news, and may have to wait for a processor.
const missedTime = 10 * time.Second

// missedBefore reports whether d, on another host, failed after c's rank had been asked about.
func (c *cause) missedBefore(d *cause) bool {
	if c.asked == 0 || d.time == 0 || c.host == d.host {
		return false
	}
	after := d.host.pulse.ours(d.time) - c.asked
	return after >= 0 && after < int64(missedTime)
}

// A shutdown is the state of a job's end.
type shutdown struct {
	cause       *cause           // the first, nil while all is well
	order       *cause           // why, if the user has ordered it, perhaps after the cause
	interrupts  int              // signals that asked for an end
	interrupted time.Time        // when the last of them came
	kills       bool             // the ranks have been ordered killed
	hasDeadline bool             // the job ends by a signal or the time limit
	interrupt   time.Duration    // between INT and TERM; 0 if ranks do not get INT
	grace       time.Duration    // that ranks have before they are killed
	overdue     <-chan time.Time // when a job with a deadline is ended without the agents' help
	agentLost   bool             // look for what it left
	looks       <-chan time.Time // when to look whether output is taken; nil while the job continues
	unwritten   error            // why output could not be written, beside the cause
	unread      error            // why standard input could not be read to its end
	lastWords   string           // what is printed when all is over
}

// endFor ends the job because of c, unless it is ending already. Of two failures the earlier is the
// cause, in whatever order they become known.
func (j *Job) endFor(c *cause) {
	if j.end.cause != nil {
		if c.before(j.end.cause) {
			j.end.cause = c
		}
		return
	}
	j.end.cause = c
	j.end.looks = time.Tick(readerLook)
	j.verbosef("ending the job: %s", c.text)
	if !j.end.kills {
		j.end.grace = j.end.interrupt + j.spec.KillDelay
		j.broadcast(&ctl.Terminate{Interrupt: j.end.interrupt, Delay: max(j.spec.KillDelay, 1), Text: c.text})
	}
	for _, h := range j.hosts {
		h.pulse.missed, h.pulse.obeys = 0, false
		h.agent.Continue()
	}
}

// setEndDeadline sees to it that a job whose ranks have been ordered to end does so in time,
// whatever they and agents do: a user waits for it, or the owner of the hosts.
func (j *Job) setEndDeadline() {
	j.end.hasDeadline, j.end.overdue = true, time.After(j.end.grace+agentEndTime)
}

// giveUpAll gives all agents up that have not ended their ranks in time.
func (j *Job) giveUpAll() {
	for _, h := range j.hosts {
		if !h.drained {
			j.giveUp(h, fmt.Sprintf("its ranks have not ended %v after the order", j.end.grace+agentEndTime))
		}
	}
}

// exited handles the end of a rank's process.
func (j *Job) exited(h *host, m *ctl.Exited) {
	who := j.recover.name(m.Rank)
	how, well := j.howEnded(m)
	j.leaving.end(m.Rank)
	j.verbosef("%s on %s %s (pid %d, %d MiB)", who, h.name, how, m.PID, m.RSS>>20)
	if well {
		if !m.Joined || m.PMI {
			j.broadcast(&ctl.Absent{Rank: m.Rank}) // others may wait for it, in Init or in a barrier of PMI
		}
		j.noteUnused(h, m)
		j.leaving.left(m.Rank)
		j.watch.Ended(m.Rank)
		j.endedRank(world.Rank(m.Rank), false)
		return
	}
	died := ctl.Died{Rank: m.Rank, Text: fmt.Sprintf("%s (pid %d)", how, m.PID)}
	j.recover.died = append(j.recover.died, died)
	j.broadcast(&died)
	status := m.Code
	switch {
	case m.Recorded != "" && j.endedWithJob(m): // a script that fails exits with 1
		status = 1
	case m.Signal != 0:
		status = 128 + m.Signal
	case status == 0:
		status = 1
	}
	c := &cause{
		status: status,
		text:   fmt.Sprintf("%s on %s %s (pid %d)", who, h.name, how, m.PID),
		rank:   m.Rank, tail: m.Tail, time: m.Time, host: h, where: j.whereCrashed(m),
	}
	if m.Recorded != "" {
		c.text += ": " + m.Recorded
	}
	if m.Unaware {
		c.asked = j.leaving.asked[m.Rank]
	}
	j.failedToo(m, how, c)
	if j.survives(m) {
		j.survive(m, c)
	} else {
		j.endFor(c)
	}
	j.endedRank(world.Rank(m.Rank), true)
}

// howEnded describes how a rank ended.
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

// firstRealTime is Linux's SIGRTMIN, as programs have it: glibc keeps two for itself.
const firstRealTime = 34

// aborted ends the job because a rank has called Abort. A status that a shell takes for success
// becomes 1.
func (j *Job) aborted(h *host, m *ctl.Abort) {
	status := m.Code & 0xff
	if status == 0 {
		status = 1
	}
	text := fmt.Sprintf("%s on %s aborted the job with status %d", j.recover.name(m.Rank), h.name, m.Code)
	if m.Reason != "" {
		text += ": " + strings.TrimRight(m.Reason, "\n")
	}
	j.endFor(&cause{status: status, text: text, time: m.Time, host: h, abort: true, rank: j.recover.original(m.Rank)})
}

// failed ends the job because a rank could not be started.
func (j *Job) failed(h *host, m *ctl.Failed) {
	if m.Rank >= len(j.plan.Ranks) && j.end.cause == nil {
		j.notef("%s on %s: %s", j.recover.name(m.Rank), h.name, m.Text)
		j.endedRank(world.Rank(m.Rank), true)
		return
	}
	j.endFor(&cause{status: m.Code, text: fmt.Sprintf("rank %d on %s: %s", m.Rank, h.name, m.Text)})
}

// lost handles the end of a channel. If the agent was not done, that is a failure. On this machine,
// the ranks die with their agent, and this process has adopted what they have started and kills it.
func (j *Job) lost(h *host, err error) {
	how := h.ended(err)
	if h.drained {
		return
	}
	if cut := (*link.Lost)(nil); errors.As(err, &cut) {
		relay := j.hosts[cut.Relay]
		l := j.lossOf(relay, true)
		j.lose(l, fmt.Sprintf("%s %s, and %s with it%s", relay.name, cut.How, ranksText(l.ranks()), l.through()))
		return
	}
	j.lose(j.lossOf(h, false), fmt.Sprintf("the agent on %s %s, and %s with it", h.name, how, ranksText(h.ranks)))
}

// A loss is that of a host, and of those that were reached through it.
type loss struct {
	host *host
	with []*host
}

// lossOf returns the loss of h, with all that are reached through it or alone.
func (j *Job) lossOf(h *host, withAll bool) *loss {
	l := &loss{host: h}
	for _, o := range j.hosts {
		if withAll && o.behind(h.index) && !o.drained {
			l.with = append(l.with, o)
		}
	}
	return l
}

// ranks returns the ranks that are lost.
func (l *loss) ranks() (ranks []int) {
	for _, h := range append(l.with, l.host) {
		if !h.drained {
			ranks = append(ranks, h.ranks...)
		}
	}
	slices.Sort(ranks)
	return ranks
}

// through explains why more than one host is lost.
func (l *loss) through() string {
	if len(l.with) == 0 {
		return ""
	}
	return ": through it were reached " + someNames(l.with)
}

// lose ends the job because of a loss, as text states, and kills what the hosts had on this
// machine. If the job is started again, only the first host is missing: the others, whose agents
// end as it does, may be reached otherwise.
func (j *Job) lose(l *loss, text string) {
	c := &cause{status: StatusFailed, text: text, host: l.host, asked: j.leaving.unanswered(l.ranks())}
	for _, h := range append(l.with, l.host) {
		j.gone(h)
		if j.statistics.Collector != nil && len(h.ranks) > 0 {
			j.statistics.Lost(h.name)
		}
	}
	j.attempt.missing = append(j.attempt.missing, l.host.index)
	j.end.agentLost = true
	j.sweep()
	j.later.agents = append(j.later.agents, c)
	j.endFor(c)
}

// sweep kills the processes that lost agents have left on this machine, and agents that have been
// given up.
func (j *Job) sweep() {
	var living, lost []int
	for _, h := range j.hosts {
		switch {
		case h.started == nil || h.started.PID == 0:
		case h.gone || h.pulse.given:
			lost = append(lost, h.started.PID)
		default:
			living = append(living, h.started.PID)
		}
	}
	j.system.Sweep(living, lost)
}

// endAgents closes all channels and waits until the agents are gone. It kills those that take too
// long, and leaves those behind that even then do not end.
func (j *Job) endAgents() {
	for _, h := range j.hosts {
		h.close()
	}
	if !j.await(agentEndTime, func(h *host) bool { return !h.pulse.given }) {
		for _, h := range j.hosts {
			h.agent.Kill()
		}
	}
	if !j.await(killTime, func(*host) bool { return true }) {
		j.leaveBehind()
	} else if j.end.agentLost {
		j.sweep()
	}
}

// leaveBehind notifies the user of agents that do not end, and kills what they have left on this
// machine, unless it has been tried.
func (j *Job) leaveBehind() {
	tried := true
	for _, h := range j.hosts {
		if !h.gone && h.started != nil {
			tried = tried && h.pulse.given
			h.pulse.given = true
			j.notef("%s: the agent does not end, and is left behind%s", h.name, h.started.Process())
		}
	}
	if !tried {
		j.sweep()
	}
}

// failToStart ends what has been started, and prints why there is no job.
func (j *Job) failToStart(err error) int {
	j.endFor(&cause{status: StatusFailed, text: err.Error()})
	j.endAgents()
	return j.conclude()
}

// timeUp ends the job because its time limit is reached.
func (j *Job) timeUp(when string) {
	j.endFor(&cause{status: StatusTimeout, text: fmt.Sprintf("time limit of %v reached%s", j.spec.Timeout, when)})
	j.setEndDeadline()
}

// conclude writes the rest of the output, prints why the job ended, and returns its exit status.
// The agents are gone.
func (j *Job) conclude() int {
	j.flush()
	j.end.unwritten = j.out.Err()
	if j.end.unwritten != nil && j.end.cause == nil {
		j.endFor(&cause{status: StatusFailed, text: fmt.Sprintf("all ranks ended well, but output is lost: %v", j.end.unwritten)})
		j.end.unwritten = nil
	}
	if j.end.unread != nil && j.end.cause == nil {
		j.endFor(&cause{status: StatusFailed, text: fmt.Sprintf("all ranks ended well, but their input was not read to its end: %v", j.end.unread)})
	}
	j.endForDeaths()
	status := 0
	if j.end.cause != nil {
		j.secondChance()
		status = j.end.cause.status
	}
	if err := j.writeStats(); err != nil && j.end.cause == nil {
		status = StatusFailed
		j.endFor(&cause{status: status, text: fmt.Sprintf("all ranks ended well, but -stats and -trace: %v", err)})
	} else if err != nil {
		j.notef("-stats and -trace: %v", err)
	}
	switch {
	case j.end.cause != nil:
		j.report()
	case j.system.Terminal:
		j.notef("all ranks (%d) have ended well after %v", len(j.plan.Ranks), time.Since(j.attempt.first).Round(10*time.Millisecond))
	}
	j.flush()
	if j.obeyLate() {
		status = j.end.cause.status
		j.report()
		j.flush()
	}
	j.out.Close()
	return status
}

// mostTwice is how many lines are shown beside the failure, too, that stand just above it.
const mostTwice = 3

// tail returns what the report shows of the stderr of the rank that failed: nothing if that is long,
// as a traceback, and is the last on the screen already.
func (j *Job) tail() []byte {
	c := j.end.cause
	if bytes.Count(c.tail, []byte("\n")) > mostTwice && j.out.EndsWith(c.rank, c.tail) {
		return nil
	}
	return c.tail
}

// report prints why the job ended.
func (j *Job) report() {
	var b bytes.Buffer
	lead := "gompirun: " + j.attempt.nextReport
	for line := range strings.Lines(strings.TrimRight(j.end.cause.text, "\n")) {
		fmt.Fprintf(&b, "%s%s\n", lead, strings.TrimRight(line, "\n"))
		lead = "gompirun: "
	}
	for line := range bytes.Lines(bytes.TrimRight(j.tail(), "\n")) {
		fmt.Fprintf(&b, "  | %s\n", bytes.TrimRight(line, "\n"))
	}
	for _, helps := range []string{remedy(j.end.cause.tail), j.end.cause.where} {
		if helps != "" {
			fmt.Fprintf(&b, "gompirun: %s\n", helps)
		}
	}
	for _, line := range j.later.then(j.end.cause) {
		fmt.Fprintf(&b, "gompirun: %s\n", line)
	}
	if j.end.unwritten != nil {
		fmt.Fprintf(&b, "gompirun: output is lost: %v\n", j.end.unwritten)
	}
	if n, files := j.out.Lost(); n > 0 {
		fmt.Fprintf(&b, "gompirun: output is lost that was not read for %v: %d bytes", j.end.readerTime(), n)
		if len(files) > 0 {
			fmt.Fprintf(&b, ", for %s", strings.Join(files, ", "))
		}
		b.WriteByte('\n')
	}
	j.end.lastWords = b.String()
	j.out.LogFailure(j.end.lastWords)
}
