package agent

import (
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/boot/pmi"
	"gompi/internal/boot/wire"
	"gompi/internal/seg"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/pipes"
	"gompi/mpirun/internal/proc"
)

// Polling periods, for changes without an event.
const (
	reapPeriod   = 10 * time.Millisecond // for ended ranks, on kernels without pidfd
	idlePeriod   = 10 * time.Second      // for anything forgotten
	groupEndTime = 20 * time.Millisecond // for the rest of a dead rank's process group, at most
	lookTime     = 2 * time.Second       // for looks at ranks before they are terminated, at most
	// lingering bounds the agent's wait, after all ranks ended well, for leftover processes with
	// the ranks' output open. If these processes cannot run, the wait lasts until they have had
	// lingerTurn of a processor, at most mostLingering.
	lingering     = 2 * time.Second
	lingerTurn    = lingering / 10
	mostLingering = 5 * lingering
	// dyingTime is the wait for processes that have closed the output and so are about to end.
	dyingTime = 20 * time.Millisecond
)

// A shutdown is the state of the end of the job on this host.
type shutdown struct {
	term     time.Time     // when INT becomes TERM
	deadline time.Time     // when TERM becomes KILL
	delay    time.Duration // between term and deadline
	linger   linger
	killing  time.Time // since when all processes are being killed
	ordered  bool      // the launcher has ordered the end
	failed   bool      // a rank's failure will make the launcher order the end
	givenUp  bool      // some processes survive SIGKILL
	crashed  bool      // a rank has crashed in C
	walks    bool      // its frames are being found
	report   ctl.Drained
	drained  bool // the launcher has been notified
	noMore   bool // all ranks of the job have ended
	over     bool
}

// A linger is the time for processes left by ranks to end by themselves.
type linger struct {
	open  bool      // they have the ranks' output open
	until time.Time // zero before it begins
	turn  proc.Turn
}

// reap notes the end of a rank's process.
func (a *agent) reap(p *process) {
	if p.ended || !proc.HasEnded(p.pid) {
		return
	}
	a.readLast(p) // a program that comes too late may have waited for this reaping
	var ws unix.WaitStatus
	var used unix.Rusage
	pid, err := unix.Wait4(p.pid, &ws, unix.WNOHANG, &used)
	if err == nil && pid == p.pid {
		a.exited(p, ws, &used)
	}
}

// exited reports a rank's end, after all its messages and output.
func (a *agent) exited(p *process, ws unix.WaitStatus, used *unix.Rusage) {
	now := seg.Now()
	p.ended, p.endedAt = true, now
	if p.pidfd >= 0 {
		unix.Close(p.pidfd)
	}
	a.readRank(p, 0)
	if p.boot >= 0 {
		a.hangUp(p)
	}
	if a.readLast(p); !p.pmi.over {
		a.hangUpClient(p)
	}
	if p.stdin >= 0 {
		a.closeInput(p)
		a.consumed()
	}
	a.output.Drain(p.output, !ws.Exited() || ws.ExitStatus() != 0)
	state := a.segment.State(p.local())
	m := &ctl.Exited{
		Rank: p.Rank.Rank, PID: p.pid, Time: seg.Unix(a.failedAt(p, ws, now)), RSS: used.Maxrss << 10,
		Tail:   p.output.Tail(),
		Joined: state >= seg.Joined, Closed: state == seg.Closed, Unaware: p.unaware || !a.aware,
		MPI: a.segment.CallsMPI(p.local()),
	}
	if s := p.pmi.State(); s != pmi.Silent {
		m.PMI, m.MPI, m.Joined, m.Closed = true, true, true, s == pmi.Finalized
	}
	if ws.Signaled() {
		m.Signal, m.Core = int(ws.Signal()), ws.CoreDump()
		m.NoMemory = m.Signal == int(unix.SIGKILL) && !a.end.ordered && a.memory.More()
		if m.Core {
			prog := a.preparation.Programs[p.Program]
			m.CoreFile = proc.CoreFile(p.pid, prog.Path, prog.Dir, m.Signal)
		}
	} else {
		m.Code = ws.ExitStatus()
	}
	crash := a.addRecord(p, m)
	if crash != "" && (m.Signal != 0 || m.Code > 128) && !a.end.failed && !a.end.ordered && !a.end.crashed {
		a.walk(p, crash)
	}
	dead := m.Signal != 0 || m.Code != 0 || m.Joined != m.Closed
	if !a.launch.Recover || !dead || a.end.ordered {
		a.end.failed = a.end.failed || dead && !a.launch.Recover
		a.reportEnd(p, m)
		return
	}
	// The rest of the dead rank's process group must not touch shared memory once the others know of
	// the death. Killed processes run no more; their memory may take long to free.
	then := func() {
		a.lostRank(p)
		a.reportEnd(p, m)
	}
	if unix.Kill(-p.pid, unix.SIGKILL) != nil {
		then() // the group is empty
		return
	}
	a.loop.Aside(func() func() {
		proc.AwaitGroup(p.pid, groupEndTime)
		return then
	})
}

// walk finds the frames of the first crash on this host, while the others learn of the death.
func (a *agent) walk(p *process, crash string) {
	a.looks++
	a.end.crashed, a.end.walks, a.end.report.Rank = true, true, p.Rank.Rank
	a.loop.Aside(func() func() {
		frames := proc.CrashFrames(crash)
		return func() {
			a.looks--
			a.end.walks, a.end.report.Frames = false, frames
		}
	})
}

// addRecord adds the rank's own record of its failure to m, or returns a crash's in C. The
// record's time counts as the time of the failure: the rank may end long after it, and other ranks
// fail because of it meanwhile.
func (a *agent) addRecord(p *process, m *ctl.Exited) (crash string) {
	r, ok := a.records.Take(p.index)
	if m.Code == 0 && m.Signal == 0 {
		if m.Joined && !m.Closed && !m.PMI {
			m.Recorded = a.segment.CannotLeave(p.local())
		}
		return ""
	}
	if !ok || r.Message == "" {
		return r.Stack
	}
	m.Recorded, m.Time = r.Message, min(m.Time, r.Before)
	if !r.IsIn(m.Tail) {
		m.Tail = pipes.Tail([]byte(r.Stack))
	}
	return ""
}

// reportEnd notifies the other ranks and the launcher that a rank has ended.
func (a *agent) reportEnd(p *process, m *ctl.Exited) {
	if !a.end.givenUp {
		a.alive--
	}
	a.segment.SetEnded(p.local())
	a.reclaim()
	a.report(m)
}

// learnOfFailure is called before this host learns of a failure or of the job's end. Ranks that
// have ended by then ended for another reason. They are reaped later, in the order of their ends.
func (a *agent) learnOfFailure() {
	if a.aware {
		return
	}
	a.aware = true
	for _, p := range a.ranks {
		p.unaware = !p.ended && proc.HasEnded(p.pid)
	}
}

// failedAt returns the time of p's failure, on the clock of seg.Now. now is the end of its
// process. A rank that closes its communicators and then exits with an error makes others fail
// that still need the rank, and they may end first: so its failure counts from the close. A
// status above 128 is a shell's report of a signal, perhaps one of ours.
func (a *agent) failedAt(p *process, ws unix.WaitStatus, now int64) int64 {
	if left := a.segment.LeftAt(p.local()); left != 0 && ws.Exited() && ws.ExitStatus() != 0 && ws.ExitStatus() <= 128 {
		return min(left, now)
	}
	return now
}

// forwardSignal sends a signal from the launcher to the ranks. A signal that stops the ranks
// stops the launcher, too. Ranks that have been ordered to end are not stopped: they would be
// killed before they could end.
func (a *agent) forwardSignal(sig unix.Signal) {
	if sig != unix.SIGTSTP {
		a.awaken()
	} else if a.asleep = true; a.end.ordered {
		return
	}
	a.signal(sig)
}

// signal sends a signal to the process groups of all ranks.
func (a *agent) signal(sig unix.Signal) {
	for _, p := range a.ranks {
		if p.pid > 0 && !p.ended {
			unix.Kill(-p.pid, sig) // the group may just have ended
		}
	}
}

// terminate asks all processes below this one to end, and kills them later; without a delay, at
// once. INT goes to the ranks' process groups, as from a terminal: detached processes are not
// interrupted.
func (a *agent) terminate(m *ctl.Terminate) {
	if m.Delay <= 0 {
		a.killAll()
	}
	if a.end.ordered {
		return
	}
	a.end.ordered = true
	a.broadcast(wire.Append(nil, &wire.Terminate{Text: m.Text}), true)
	a.end.term, a.end.delay = time.Now().Add(m.Interrupt), m.Delay
	if m.Interrupt > 0 {
		a.signal(unix.SIGINT)
		a.signal(unix.SIGCONT)
	}
}

// termAt returns when TERM is due, later during looks at ranks, whose findings would be lost.
func (a *agent) termAt() time.Time {
	if a.end.term.IsZero() || a.looks == 0 {
		return a.end.term
	}
	return a.end.term.Add(lookTime)
}

// sendTerm sends TERM to all processes below this one.
func (a *agent) sendTerm(now time.Time) {
	a.end.term, a.end.deadline = time.Time{}, now.Add(a.end.delay)
	if _, err := proc.SignalBelow(unix.SIGTERM, nil); err != nil {
		a.signal(unix.SIGTERM)
	}
	if _, err := proc.SignalBelow(unix.SIGCONT, nil); err != nil {
		a.signal(unix.SIGCONT) // stopped processes cannot end
	}
}

// killAll begins to kill all processes below this one; tick continues.
func (a *agent) killAll() {
	a.end.ordered, a.end.term, a.end.deadline = true, time.Time{}, time.Time{}
	if a.end.killing.IsZero() {
		a.end.killing = time.Now()
	}
}

// pollTimeout returns the time until tick has work, in milliseconds.
func (a *agent) pollTimeout() int {
	if a.ranks == nil && !a.end.ordered {
		return -1
	}
	wait := idlePeriod
	for _, t := range []time.Time{a.output.Due, a.termAt(), a.end.deadline, a.end.linger.until, a.nextLook, a.nextKept,
		a.nextStacks, a.nextAlone, a.next, a.preparation.slowAt()} {
		if !t.IsZero() {
			wait = min(wait, time.Until(t))
		}
	}
	if !a.end.killing.IsZero() {
		wait = min(wait, proc.KillPeriod)
	}
	if a.alive > 0 && a.ranks[0].pidfd < 0 {
		wait = min(wait, reapPeriod)
	}
	return max(0, int((wait+time.Millisecond-1)/time.Millisecond))
}

// tick does all work that is due.
func (a *agent) tick(now time.Time) {
	a.output.SendPartials(now, a.asleep)
	if a.alive > 0 && a.ranks[0].pidfd < 0 {
		a.reapAny()
	} else if a.unreaped {
		a.reapOrphans()
	}
	if t := a.termAt(); !t.IsZero() && !now.Before(t) {
		a.sendTerm(now)
	}
	if !a.end.deadline.IsZero() && !now.Before(a.end.deadline) {
		a.end.deadline = time.Time{}
		a.killAll()
	}
	if !a.end.killing.IsZero() {
		a.kill(now)
	}
	a.look(now)
	a.lookForKept(now)
	if !a.nextStacks.IsZero() && !now.Before(a.nextStacks) {
		a.lateStacks(now)
	}
	if !a.nextAlone.IsZero() && !now.Before(a.nextAlone) {
		a.lookForAlone(now)
	}
	a.reportSlow(now)
	a.beat(now)
	if a.launch != nil && a.alive == 0 && !a.awaitsOthers() && (!a.preparation.underWay || a.end.ordered) &&
		!a.end.drained && a.end.killing.IsZero() {
		a.finish(now)
	}
}

// awaitsOthers reports whether this host's part lasts as long as ranks of other hosts: the
// launcher may have a rank replaced here, or processes left by ranks may live on only if the job
// ends well.
func (a *agent) awaitsOthers() bool {
	return (a.launch.Spares > 0 || a.launch.KeepChildren) && !a.end.noMore && !a.end.ordered && !a.orphaned
}

// kill kills the processes below this one, and notices when none is left.
func (a *agent) kill(now time.Time) {
	children := a.reapAny()
	if children && now.Sub(a.end.killing) < proc.Hopeless {
		n, err := proc.SignalBelow(unix.SIGKILL, nil)
		if err != nil {
			a.signal(unix.SIGKILL)
		}
		a.group.Kill()
		if a.alive == 0 {
			a.end.report.Killed = max(a.end.report.Killed, n)
		}
		return
	}
	if children {
		a.note("some processes do not die even of SIGKILL; they are left behind")
		a.alive, a.end.givenUp = 0, true
	}
	a.end.killing = time.Time{}
	a.end.over = a.orphaned
}

// finish ends the job on this host after all its ranks. finish waits for open output, kills
// leftover processes unless they may live on, and notifies the launcher.
func (a *agent) finish(now time.Time) {
	a.turnAwayLate()
	open := a.output.Open() || a.loop.Running() > 0
	children := a.reapAny() && !a.end.givenUp
	if children && a.endsByItself(now) {
		return
	}
	if children && !a.end.ordered && (open || !a.launch.KeepChildren) && a.lingers(now, open) {
		return
	}
	a.end.linger = linger{}
	if children && (!a.launch.KeepChildren || a.end.ordered) {
		a.killAll()
		return
	}
	if a.output.Halted() || a.end.walks {
		return // output waits for credit
	}
	a.output.Close()
	a.reportStats()
	a.report(&a.end.report)
	a.end.drained = true
}

// endsByItself reports whether processes left by the ranks, such as a program wrapped by a shell,
// still have the time that an order to end gives, in which a program may save its state.
// Processes that the interrupt cannot have reached get TERM at once.
func (a *agent) endsByItself(now time.Time) bool {
	if a.end.failed && !a.end.ordered && !a.orphaned {
		return true
	}
	if !a.end.term.IsZero() && a.looks == 0 && !a.interrupted() {
		a.sendTerm(now)
	}
	return !a.end.term.IsZero() || !a.end.deadline.IsZero()
}

// interrupted reports whether a process left by the ranks has got their INT.
func (a *agent) interrupted() bool {
	below, _ := proc.Below(nil)
	return slices.ContainsFunc(below, func(c proc.Process) bool {
		ofRank := slices.ContainsFunc(a.ranks, func(p *process) bool { return p.pid == c.Group })
		return ofRank && !c.Zombie && !proc.Ignores(c.PID, unix.SIGINT)
	})
}

// lingers reports whether processes left by the ranks may still have time to end by themselves.
// open tells whether they have the ranks' output open.
func (a *agent) lingers(now time.Time, open bool) bool {
	l := &a.end.linger
	if l.until.IsZero() || l.open && !open {
		_, used := a.ready(proc.Children(os.Getpid())...)
		*l = linger{open: open, until: now.Add(dyingTime), turn: proc.Turn{Begun: now, Used: used}}
		a.lingerOn(now)
	}
	unread := a.output.Halted() || a.asleep
	switch {
	case now.Before(l.until):
	case unread:
		l.until = now.Add(pipes.LineTimeout)
	case a.leftStarves(now):
		l.until = now.Add(proc.TurnLook)
	default:
		return false
	}
	return true
}

// leftStarves reports whether processes left by the ranks lack a turn on a processor to end.
func (a *agent) leftStarves(now time.Time) bool {
	ready, used := a.ready(proc.Children(os.Getpid())...)
	ready = ready || a.output.Pending()
	l := &a.end.linger
	if l.open {
		return l.turn.Missed(now, ready, used, lingerTurn, mostLingering)
	}
	return l.turn.Missed(now, ready, used, proc.ClockTick, proc.TurnTime)
}

// lingerOn restarts the time of processes left with the ranks' output open, which could not write
// for a while.
func (a *agent) lingerOn(now time.Time) {
	if l := &a.end.linger; l.open && !l.until.IsZero() {
		l.until = now.Add(lingering)
	}
}

// awaken resumes all waits that were suspended while the launcher and the ranks were stopped.
func (a *agent) awaken() {
	if a.asleep {
		a.asleep = false
		a.output.Continue()
		a.lingerOn(time.Now())
	}
}

// credit resumes halted output: the launcher has room for n more bytes.
func (a *agent) credit(n int) {
	if a.output.Credit(n) {
		a.lingerOn(time.Now())
	}
}
