package job

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/boot/wire"
	"gompi/internal/env"
	"gompi/internal/world"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/failure"
	"gompi/mpirun/internal/link"
)

// Exit statuses of gompirun itself.
const (
	StatusTimeout = 124
	StatusFailed  = 125
)

const (
	// agentEndTime bounds the time of agents to end without work left, and beyond the kill delay
	// when a signal or the time limit ends the job. Their attempts to kill unkillable processes are
	// shorter.
	agentEndTime = 7 * time.Second
	// killTime bounds the time of killed agents to end.
	killTime = 2 * time.Second
)

// A shutdown is the state of a job's end.
type shutdown struct {
	cause       *failure.Cause   // the first, nil while all is well
	order       *failure.Cause   // the user's order to end, perhaps after the cause
	interrupts  int              // number of signals to end
	interrupted time.Time        // time of the last of them
	kills       bool             // the ranks have been ordered killed
	hasDeadline bool             // the job ends by a signal or the time limit
	interrupt   time.Duration    // between INT and TERM; 0 if ranks do not get INT
	grace       time.Duration    // time of the ranks until they are killed
	overdue     <-chan time.Time // when a job with a deadline ends without the agents' help
	agentLost   bool             // look for its leftovers
	looks       <-chan time.Time // when to check whether output is read; nil while the job continues
	unwritten   error            // error of writing output, beside the cause
	unread      error            // error of reading standard input
	lastWords   string           // last message of the job
}

// endFor ends the job because of c, unless the job is already ending. The earlier of two failures
// is the cause, in whatever order they become known.
func (j *Job) endFor(c *failure.Cause) {
	if j.end.cause != nil {
		if c.Before(j.end.cause) {
			j.end.cause = c
		}
		return
	}
	j.end.cause = c
	j.end.looks = time.Tick(readerLook)
	j.verbosef("ending the job: %s", c.Text)
	if !j.end.kills {
		j.end.grace = j.end.interrupt + j.spec.KillDelay
		j.broadcast(&ctl.Terminate{Interrupt: j.end.interrupt, Delay: max(j.spec.KillDelay, 1), Text: c.Text})
	}
	for _, h := range j.hosts {
		h.pulse.missed, h.pulse.obeys = 0, false
		h.Agent.Continue()
	}
}

// setEndDeadline makes a job end in time after the order to its ranks, whatever they and the
// agents do: a user, or the owner of the hosts, is waiting.
func (j *Job) setEndDeadline() {
	j.end.hasDeadline, j.end.overdue = true, time.After(j.end.grace+agentEndTime)
}

// giveUpAll gives up all agents that have not ended their ranks in time.
func (j *Job) giveUpAll() {
	for _, h := range j.hosts {
		if !h.drained {
			j.giveUp(h, fmt.Sprintf("its ranks have not ended %v after the order", j.end.grace+agentEndTime))
		}
	}
}

// exited handles the end of a rank's process.
func (j *Job) exited(h *host, m *ctl.Exited) {
	who := j.recover.Name(m.Rank)
	how, well := j.howEnded(m)
	j.leaving.End(m.Rank)
	j.verbosef("%s on %s %s (pid %d, %d MiB)", who, h.Name(), how, m.PID, m.RSS>>20)
	if well {
		if !m.Joined || m.PMI {
			j.broadcast(&ctl.Absent{Rank: m.Rank}) // others may wait for it, in Init or in a barrier of PMI
		}
		j.noteUnused(h, m)
		j.leaving.Left(m.Rank)
		j.watch.Ended(m.Rank)
		j.endedRank(world.Rank(m.Rank), false)
		return
	}
	died := ctl.NewToRanks(&wire.Died{Rank: world.Rank(m.Rank), Text: fmt.Sprintf("%s (pid %d)", how, m.PID)})
	j.recover.died = append(j.recover.died, died.Frame...)
	j.broadcast(died)
	status := m.Code
	switch {
	case m.Recorded != "" && j.endedWithJob(m): // a failing script exits with 1
		status = 1
	case m.Signal != 0:
		status = 128 + m.Signal
	case status == 0:
		status = 1
	}
	c := &failure.Cause{
		Status: status,
		Text:   fmt.Sprintf("%s on %s %s (pid %d)", who, h.Name(), how, m.PID),
		Rank:   m.Rank, Tail: m.Tail, Time: m.Time, Clock: &h.pulse.clock,
	}
	if h.dead = append(h.dead, c); failure.IsCrash(m) {
		c.Where, c.Hint = failure.WhereCrashed(m, j.spec.Programs[j.plan.Ranks[j.recover.Original(m.Rank)].Prog].Argv)
	}
	if m.Recorded != "" {
		c.Text += ": " + m.Recorded
	}
	if m.Unaware {
		c.Asked = j.leaving.Asked(m.Rank)
	}
	j.failedToo(m, how, c)
	if j.survives(m) {
		j.survive(m, c)
	} else {
		j.endFor(c)
	}
	j.endedRank(world.Rank(m.Rank), true)
}

// alone handles a rank that is a job of one by mistake. The user is notified at once, of the
// first such rank. Even if the rank ends well, that is a failure: it has done the work of all
// ranks.
func (j *Job) alone(h *host, m *ctl.Alone) {
	if j.lone == nil {
		j.lone = map[int]bool{}
		j.notef("%s on %s (process %d) is rank 0 of 1, as each of %d will be: %s (-x %s=alone says that this is meant)",
			j.recover.Name(m.Rank), h.Name(), m.PID, len(j.plan.Ranks), m.Why, env.Boot)
	}
	j.lone[m.Rank] = m.Sure
}

// howEnded describes a rank's end, and reports whether the rank ended well.
func (j *Job) howEnded(m *ctl.Exited) (how string, well bool) {
	well = m.Code == 0 && m.Signal == 0 && m.Joined == m.Closed
	if well && !m.Joined && j.lone[m.Rank] {
		return fmt.Sprintf("ended with status 0, as rank 0 of 1 and not of %d", len(j.plan.Ranks)), false
	}
	if m.Recorded != "" && j.endedWithJob(m) {
		return "failed, and was ended with the job", false
	}
	return failure.HowEnded(m), well
}

// failedToo notes a rank's failure for the report. Ranks that were ended with the job have not
// failed.
func (j *Job) failedToo(m *ctl.Exited, how string, c *failure.Cause) {
	if j.endedWithJob(m) && m.Recorded == "" {
		return
	}
	j.later.AddRank(j.recover.Original(m.Rank), how, m.Signal == 0, c)
}

// endedWithJob reports whether a rank was ended with the job.
func (j *Job) endedWithJob(m *ctl.Exited) bool {
	ours := func(sig int) bool {
		return sig == int(unix.SIGTERM) || sig == int(unix.SIGKILL) || sig == int(unix.SIGINT) && j.end.interrupt > 0
	}
	return j.end.cause != nil && (ours(m.Signal) || ours(m.Code-128))
}

// aborted ends the job because a rank has called Abort. A status that means success to shells
// becomes 1.
func (j *Job) aborted(h *host, from *ctl.FromRank, m *wire.Abort) {
	status := m.Code & 0xff
	if status == 0 {
		status = 1
	}
	text := fmt.Sprintf("%s on %s aborted the job with status %d", j.recover.Name(from.Rank), h.Name(), m.Code)
	if m.Reason != "" {
		text += ": " + strings.TrimRight(m.Reason, "\n")
	}
	j.endFor(&failure.Cause{
		Status: status, Text: text, Time: from.Time, Clock: &h.pulse.clock, Abort: true,
		Rank: j.recover.Original(from.Rank),
	})
}

// failed ends the job because a rank could not be started.
func (j *Job) failed(h *host, m *ctl.Failed) {
	if m.Rank >= len(j.plan.Ranks) && j.end.cause == nil {
		j.notef("%s on %s: %s", j.recover.Name(m.Rank), h.Name(), m.Text)
		j.endedRank(world.Rank(m.Rank), true)
		return
	}
	j.endFor(&failure.Cause{Status: m.Code, Text: fmt.Sprintf("rank %d on %s: %s", m.Rank, h.Name(), m.Text)})
}

// lost handles the end of a channel, which is a failure unless the agent's work was done. On this
// machine, the ranks die with their agent, and this process has adopted their children and kills
// them.
func (j *Job) lost(h *host, err error) {
	how := h.Ended(err)
	if h.drained {
		return
	}
	if cut := (*link.Lost)(nil); errors.As(err, &cut) {
		relay := j.hosts[cut.Relay]
		l := j.lossOf(relay, true)
		j.lose(l, fmt.Sprintf("%s %s, and %s with it%s", relay.Name(), cut.How, ranksText(l.ranks()), l.through()))
		return
	}
	j.lose(j.lossOf(h, false), fmt.Sprintf("the agent on %s %s, and %s with it", h.Name(), how, ranksText(h.ranks)))
}

// A loss is the loss of a host, and of the hosts behind it.
type loss struct {
	host *host
	with []*host
}

// lossOf returns the loss of h, with or without the hosts behind it.
func (j *Job) lossOf(h *host, withAll bool) *loss {
	l := &loss{host: h}
	for _, o := range j.hosts {
		if withAll && o.Behind(h.Index) && !o.drained {
			l.with = append(l.with, o)
		}
	}
	return l
}

// ranks returns the lost ranks.
func (l *loss) ranks() (ranks []int) {
	for _, h := range append(l.with, l.host) {
		if !h.drained {
			ranks = append(ranks, h.ranks...)
		}
	}
	slices.Sort(ranks)
	return ranks
}

// through explains the loss of more than one host.
func (l *loss) through() string {
	if len(l.with) == 0 {
		return ""
	}
	return ": through it were reached " + someNames(l.with)
}

// lose ends the job because of a loss, for the reason text, and kills the hosts' processes on
// this machine. For a restart only the first host counts as missing: the others, whose agents end
// as well, may be reachable otherwise.
func (j *Job) lose(l *loss, text string) {
	asked := j.leaving.Unanswered(l.ranks())
	c := &failure.Cause{Status: StatusFailed, Text: text, Clock: &l.host.pulse.clock, Asked: asked}
	for _, h := range append(l.with, l.host) {
		j.gone(h)
		if j.statistics != nil && len(h.ranks) > 0 {
			j.statistics.Lost(h.Name())
		}
	}
	j.attempt.missing = append(j.attempt.missing, l.host.Index)
	j.end.agentLost = true
	j.sweep()
	j.later.AddAgent(c)
	j.endFor(c)
}

// sweep kills the processes that lost agents have left on this machine, and agents that have been
// given up.
func (j *Job) sweep() {
	var living, lost []int
	for _, h := range j.hosts {
		switch {
		case h.Started == nil || h.Started.PID == 0:
		case h.Gone || h.pulse.given:
			lost = append(lost, h.Started.PID)
		default:
			living = append(living, h.Started.PID)
		}
	}
	j.system.Sweep(living, lost)
}

// endAgents closes all channels and waits for the agents' end. Slow agents are killed, and agents
// that do not end even then are left behind.
func (j *Job) endAgents() {
	for _, h := range j.hosts {
		h.Close()
	}
	if !j.await(agentEndTime, func(h *host) bool { return !h.pulse.given }) {
		for _, h := range j.hosts {
			h.Agent.Kill()
		}
	}
	if !j.await(killTime, func(*host) bool { return true }) {
		j.leaveBehind()
	} else if j.end.agentLost {
		j.sweep()
	}
}

// leaveBehind notifies the user of agents that do not end, and kills their processes on this
// machine, unless that has been tried.
func (j *Job) leaveBehind() {
	tried := true
	for _, h := range j.hosts {
		if !h.Gone && h.Started != nil {
			tried = tried && h.pulse.given
			h.pulse.given = true
			j.notef("%s: the agent does not end, and is left behind%s", h.Name(), h.Started.Process())
		}
	}
	if !tried {
		j.sweep()
	}
}

// failToStart ends all started processes, and prints why there is no job.
func (j *Job) failToStart(err error) int {
	j.endFor(&failure.Cause{Status: StatusFailed, Text: err.Error()})
	j.endAgents()
	return j.conclude()
}

// timeUp ends the job because its time limit is reached.
func (j *Job) timeUp(when string) {
	j.endFor(&failure.Cause{Status: StatusTimeout,
		Text: fmt.Sprintf("time limit of %v reached%s", j.spec.Timeout, when)})
	j.setEndDeadline()
}

// conclude writes the rest of the output, prints the reason for the job's end, and returns its
// exit status. The agents have ended.
func (j *Job) conclude() int {
	j.flush()
	j.end.unwritten = j.out.Err()
	if j.end.unwritten != nil && j.end.cause == nil {
		j.failAfterAll(fmt.Errorf("output is lost: %w", j.end.unwritten))
		j.end.unwritten = nil
	}
	if j.end.unread != nil && j.end.cause == nil {
		j.failAfterAll(fmt.Errorf("their input was not read to its end: %w", j.end.unread))
	}
	j.endForDeaths()
	status := 0
	if j.end.cause != nil {
		j.secondChance()
		status = j.end.cause.Status
	}
	if err := j.writeStats(); err != nil && j.end.cause == nil {
		status = StatusFailed
		j.failAfterAll(fmt.Errorf("-stats and -trace: %w", err))
	} else if err != nil {
		j.notef("-stats and -trace: %v", err)
	}
	switch {
	case j.end.cause != nil:
		j.report()
	case j.system.Terminal:
		took := time.Since(j.attempt.first).Round(10 * time.Millisecond)
		j.notef("all ranks (%d) have ended well after %v", len(j.plan.Ranks), took)
	}
	j.flush()
	if j.obeyLate() {
		status = j.end.cause.Status
		j.report()
		j.flush()
	}
	j.out.Close()
	return status
}

// failAfterAll fails a job whose ranks have ended well.
func (j *Job) failAfterAll(err error) {
	j.endFor(&failure.Cause{Status: StatusFailed, Text: fmt.Sprintf("all ranks ended well, but %v", err)})
}

// mostTwice is the most lines that the report repeats although they stand just above it.
const mostTwice = 3

// tail returns the failed rank's stderr for the report: nothing if that is long, such as a
// traceback, and already the last text on the screen.
func (j *Job) tail() []byte {
	c := j.end.cause
	if bytes.Count(c.Tail, []byte("\n")) > mostTwice && j.out.EndsWith(c.Rank, c.Tail) {
		return nil
	}
	return c.Tail
}

// report prints the reason for the job's end.
func (j *Job) report() {
	var b bytes.Buffer
	lead := "gompirun: " + j.attempt.nextReport
	for line := range strings.Lines(strings.TrimRight(j.end.cause.Text, "\n")) {
		fmt.Fprintf(&b, "%s%s\n", lead, strings.TrimRight(line, "\n"))
		lead = "gompirun: "
	}
	for line := range bytes.Lines(bytes.TrimRight(j.tail(), "\n")) {
		fmt.Fprintf(&b, "  | %s\n", bytes.TrimRight(line, "\n"))
	}
	for _, helps := range []string{failure.Remedy(j.end.cause.Tail), j.end.cause.Frames, j.end.cause.Where, j.end.cause.Hint} {
		if helps != "" {
			fmt.Fprintf(&b, "gompirun: %s\n", helps)
		}
	}
	for _, line := range j.later.Lines(j.end.cause) {
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
