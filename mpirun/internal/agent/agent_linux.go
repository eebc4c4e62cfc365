package agent

import (
	"fmt"
	"os/signal"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/boot"
	"gompi/internal/boot/pmi"
	"gompi/internal/boot/wire"
	"gompi/internal/machine"
	"gompi/internal/seg"
	"gompi/internal/stats"
	"gompi/internal/world"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/hostinfo"
	"gompi/mpirun/internal/loop"
	"gompi/mpirun/internal/pipes"
	"gompi/mpirun/internal/plan"
	"gompi/mpirun/internal/proc"
	"gompi/mpirun/internal/program"
	"gompi/mpirun/internal/stall"
	"gompi/mpirun/internal/stdio"
)

// An agent serves one host. One goroutine handles all events, in the kernel's order, because that
// is fastest, and shows which rank failed first.
type agent struct {
	loop     loop.Loop
	in, out  int // the channel to the launcher
	inherit  int // the descriptor of the launcher's standard input, -1 if there is none
	orders   wire.Frames
	reports  []byte // not yet sent to the launcher
	clogged  bool   // the channel was full when last written to
	orphaned bool   // the launcher is gone
	aware    bool   // the launcher has reported a failure, or the job's end

	layout   ctl.Layout
	launch   *ctl.Launch
	hello    *ctl.Hello
	nodeEnv  *program.Node   // this host's description in the ranks' variables
	records  program.Records // of the ranks' failures
	gloo     []string        // a variable for gloo, if it needs one
	held     int             // the socket that holds MASTER_PORT
	segment  *seg.Segment
	stats    *stats.Memory // nil if the ranks do not count, or after the report
	bells    []int
	address  string               // of the segment's socket, listenFD
	listenFD int                  // socket for ranks whose inherited descriptors a wrapper has closed
	callers  map[int]*wire.Frames // connections to listenFD that have not named a rank

	affinity proc.Affinity

	ready    func(pids ...int) (bool, time.Duration) // proc.Ready, except in tests
	ranks    []*process
	local    map[int]int // index in ranks by rank
	alive    int
	unreaped bool         // children other than ranks may have ended
	cards    int          // ranks whose card has arrived
	absent   []world.Rank // ranks of the job that ended without joining
	dead     reclaims
	// releases frees arenas in the background; the agent's end need not wait for that.
	releases  sync.WaitGroup
	originals plan.Spares // of all hosts
	memory    machine.Kills
	group     *proc.Group

	started   time.Time // when the ranks were started
	nextAlone time.Time // when to look for ranks that are jobs of one
	stallState
	pulse
	revoked     map[uint64]bool     // communicators known to be broken
	left        map[world.Rank]bool // ranks of other hosts known to have left
	output      pipes.Outputs
	feed        feed
	preparation preparation
	pmi         pmi.Server
	end         shutdown
	check       *hostinfo.Check // nil without a checkup
	buf         [ctl.MaxChunk]byte
}

// Run serves the launcher behind the descriptors in and out until the launcher is gone or the job
// is done, and returns the exit status of the process. The process is the agent's alone: Run
// changes its name, affinity and descriptors, and leaves no process below it. dog is the pipe to
// the parent watchdog, input the standard input for a rank on the launcher's own host; -1 for
// none.
func Run(in, out, dog, input int) int {
	// Ranks die with the thread that forked them, and inherit its affinity.
	runtime.LockOSThread()
	proc.SetName(boot.AgentName)
	a := &agent{in: in, out: out, inherit: input, ready: proc.Ready, orders: ctl.Frames(),
		records: program.NewRecords(""), local: map[int]int{}, revoked: map[uint64]bool{}, left: map[world.Rank]bool{},
		callers: map[int]*wire.Frames{}, listenFD: -1, held: -1, pulse: pulse{watchdog: dog}}
	defer func() { a.group.Remove() }()
	defer a.preparation.Abandon()
	defer func() { a.records.Remove(len(a.ranks)) }()
	err := a.serve()
	signal.Ignore(unix.SIGPIPE) // stderr may have lost its reader
	if err != nil {
		for a.launcherLost(); !a.end.over; time.Sleep(proc.KillPeriod) {
			a.tick(time.Now())
		}
		fmt.Fprintf(stdio.Stderr, "gompirun: agent: %v\n", err) // last, because its reader may block it
		return program.CannotStart
	}
	if a.launcherTimedOut {
		fmt.Fprintf(stdio.Stderr, "gompirun: agent: nothing heard from gompirun for %v\n", ctl.Silence*a.every)
		return program.CannotStart
	}
	return 0
}

func (a *agent) serve() error {
	if err := proc.CheckAgentFiles(); err != nil {
		return err
	}
	if err := proc.Adopt(); err != nil {
		return err
	}
	if err := a.takeChannel(); err != nil {
		return err
	}
	if err := a.open(); err != nil {
		return err
	}
	if err := a.loop.Watch(a.in, unix.EPOLLIN, func(uint32) { a.readOrders() }); err != nil {
		return err
	}
	if err := a.loop.OnSignal(unix.SIGCHLD, func() { a.unreaped = true }); err != nil {
		return fmt.Errorf("watch children: %w", err)
	}
	if a.watchdog >= 0 {
		// epoll always reports errors
		if err := a.loop.Watch(a.watchdog, 0, func(uint32) { a.loseWatchdog() }); err != nil {
			return err
		}
	}
	a.sendHello()
	for {
		a.flush()
		if a.end.over || a.done() && !a.launch.Srun {
			return nil // without waiting for the launcher's answer: that would cost a round trip
		}
		events, err := a.loop.Wait(a.pollTimeout())
		if err != nil {
			return err
		}
		a.loop.Handle(events)
		a.tick(time.Now())
	}
}

// open makes the loop, with the ranks' output.
func (a *agent) open() error {
	a.output.Loop, a.output.Report, a.output.Ready = &a.loop, a.report, a.ready
	return a.loop.Open()
}

// takeChannel moves the channel away from the standard descriptors.
func (a *agent) takeChannel() error {
	for _, fd := range []int{a.watchdog, a.inherit} {
		if fd >= 0 {
			unix.CloseOnExec(fd)
		}
	}
	if err := stdio.Take(&a.in, &a.out); err != nil {
		return fmt.Errorf("control channel: %w", err)
	}
	return nil
}

// sendHello describes this host to the launcher.
func (a *agent) sendHello() {
	a.reports = append(a.reports, ctl.Magic...)
	a.hello = hostinfo.Host()
	var err error
	if a.held, a.hello.Port, err = hostinfo.HoldPort(); err != nil {
		a.note("no port for MASTER_PORT: %v", err)
	}
	a.report(a.hello)
}

// report queues m for the launcher.
func (a *agent) report(m ctl.Message) { a.reports = ctl.Append(a.reports, m) }

func (a *agent) note(format string, args ...any) {
	a.report(&ctl.Note{Text: fmt.Sprintf(format, args...)})
}

// unclog resumes sending to the launcher.
func (a *agent) unclog(uint32) {
	a.clogged = false
	a.loop.Forget(a.out)
}

// flush sends queued reports to the launcher, as far as the channel takes them.
func (a *agent) flush() {
	if a.clogged || a.orphaned {
		return
	}
	var err error
	if a.reports, err = loop.Write(a.out, a.reports); err != nil {
		a.launcherLost()
	} else if len(a.reports) > 0 {
		a.clogged = a.loop.Watch(a.out, unix.EPOLLOUT, a.unclog) == nil
	}
}

// readOrders reads and follows the launcher's orders.
func (a *agent) readOrders() {
	for !a.orphaned {
		n, err := unix.Read(a.in, a.orders.ReadBuffer(false))
		if err == unix.EINTR {
			continue
		}
		if err == unix.EAGAIN {
			return
		}
		if err != nil || n == 0 {
			a.launcherLost()
			return
		}
		a.orders.Filled(n)
		a.lastWord = time.Now()
		for {
			m, ok, err := ctl.Next(&a.orders)
			if err == nil && !ok {
				break
			}
			if err == nil {
				err = a.follow(m)
			}
			if err != nil {
				a.note("orders of the launcher: %v", err)
				a.launcherLost()
				return
			}
		}
	}
}

// follow obeys m.
func (a *agent) follow(m ctl.Message) error {
	switch m := m.(type) {
	case *ctl.Ping:
		a.pong(m)
	case *ctl.Layout:
		a.layout = *m
	case *ctl.Launch:
		a.startPulse(m.Heartbeat)
		a.start(m)
	case *ctl.Input:
		a.input(m.Data)
	case *ctl.Piece:
		a.take(m.Data)
	case *ctl.Credit:
		a.credit(m.Bytes)
	case *ctl.Signal:
		a.forwardSignal(unix.Signal(m.Number))
	case *ctl.Ask:
		a.answer(m)
	case *ctl.Gathered:
		a.gathered = true
		a.broadcast(m.Frame, false)
	case *ctl.ToRanks:
		return a.pass(m.Frame)
	case *ctl.Replace:
		a.replace(m)
	case *ctl.Brief:
		a.brief(m)
	case *ctl.NoMore:
		a.end.noMore = true
	case *ctl.Absent:
		a.learnOfFailure()
		a.noteAbsent(world.Rank(m.Rank))
	case *ctl.Fenced:
		a.pmi.Fenced(m.Puts)
	case *ctl.Terminate:
		a.learnOfFailure()
		a.terminate(m)
	case *ctl.FindGPUs:
		a.loop.Aside(func() func() {
			found := hostinfo.GPUs(hostinfo.TopoTime)
			return func() { a.report(found) }
		})
	case *ctl.Examine:
		a.examine(m)
	case *ctl.Reach:
		a.reach(m)
	}
	return nil
}

// answer reports the calls of the ranks, or asks ranks for their stacks.
func (a *agent) answer(m *ctl.Ask) {
	if len(m.Stacks) > 0 {
		a.askStacks(m.Stacks)
		a.lateStacks(time.Now())
		return
	}
	now := a.doing()
	if m.Counts {
		a.count(now)
	}
	others := a.nonGompiRanks(now)
	gpus := m.Counts && !a.asksGPUs
	if len(others) == 0 && !gpus {
		a.report(now)
		return
	}
	a.looks++
	a.asksGPUs = a.asksGPUs || gpus
	a.loop.Aside(func() func() {
		stall.LookInto(others, !m.Counts)
		if gpus && hostinfo.Library("libnvidia-ml.so.1") != "" {
			now.GPUs = hostinfo.GPUs(hostinfo.UseTime).Found
		}
		return func() {
			a.looks--
			a.asksGPUs = a.asksGPUs && !gpus
			a.report(now)
		}
	})
}

// examine reports this host's findings to gompirun doctor.
func (a *agent) examine(m *ctl.Examine) {
	received := time.Now()
	if a.check == nil {
		a.check = hostinfo.BeginCheck(m) // until the process ends
	}
	f := a.check.Findings()
	f.MPI = program.MPINames(program.MPIFolder())
	a.loop.Aside(func() func() {
		f.Python = hostinfo.Python(program.Surroundings(m.Env, m.Dir, m.Remote))
		return func() {
			f.Received, f.Sent = received.UnixNano(), time.Now().UnixNano()
			a.report(f)
		}
	})
}

// reach tries to reach another host. It blocks the agent, which has no ranks during a checkup.
func (a *agent) reach(m *ctl.Reach) {
	if a.check == nil {
		a.report(&ctl.Reached{Peer: m.Peer, Trouble: "asked before it was examined"})
		return
	}
	a.report(a.check.Reach(m))
}

// noteAbsent notifies ranks in Init of a rank that has ended without joining.
func (a *agent) noteAbsent(rank world.Rank) {
	a.absent = append(a.absent, rank)
	if a.cards > 0 {
		a.broadcast(absence(rank), false)
	}
	a.pmi.Absent(int(rank))
}

// done reports whether all is done here and all reports are sent. Behind srun the agent must not
// end yet: Slurm's daemon would close its socket to srun, and the kernel would answer later
// messages of the launcher, such as credit, by resetting that connection, with all output that
// srun has not read. So the launcher closes the channel after the last message.
func (a *agent) done() bool { return a.end.drained && len(a.reports) == 0 }

// launcherLost begins the agent's end after the launcher is gone, or has closed the channel.
func (a *agent) launcherLost() {
	a.orphaned = true
	a.loop.Forget(a.in)
	if a.done() {
		a.end.over = true
		return
	}
	a.killAll()
}
