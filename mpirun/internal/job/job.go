// Package job is the single goroutine of the launcher that makes all decisions: the placement and
// start of ranks, the meaning of failures, the end of the job and its reason, and the exit
// status. Its events are messages of agents, signals, input, questions of users, and time.
// Everything else is reached through a System and the Agents.
//
// The files, in the order of a job, are start, hosts, launch, job with its events (input, signals,
// heartbeat, fence, questions), recover, shutdown, stacks, and restart.
package job

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"gompi/hostfile"
	"gompi/internal/boot"
	"gompi/internal/boot/wire"
	"gompi/internal/world"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/failure"
	"gompi/mpirun/internal/inventory"
	"gompi/mpirun/internal/link"
	"gompi/mpirun/internal/monitor"
	"gompi/mpirun/internal/output"
	"gompi/mpirun/internal/plan"
	"gompi/mpirun/internal/program"
	"gompi/mpirun/internal/report"
	"gompi/mpirun/internal/stall"
)

// A System is the services that a job needs from its process. The job's goroutine calls its
// functions. They return soon, except where their comments state otherwise.
type System struct {
	Stdout, Stderr *os.File
	Terminal       bool // Stderr is a terminal: a user watches
	Width          int  // of tables on Stderr
	Colour         bool // the terminal shows colours, and they are wanted
	Environ        []string
	Dir            string // the working directory, by a name that other hosts may have too
	MPIFolder      string // of gompi's MPI libraries here, "" if they were not built

	// Connect starts the agents of hosts, within ctx, in the background. Their events go to events
	// until done is closed. send sends a message to some agents, by the numbers of their hosts.
	Connect func(ctx context.Context, hosts []hostfile.Host, events chan<- link.Event,
		done <-chan struct{}) (agents []inventory.Agent, send func(hosts []int, m ctl.Message))
	// Signals begins to catch signals, once for all runs of a job, and until the process ends.
	Signals func() <-chan os.Signal
	// Stop stops this process, and returns after its SIGCONT.
	Stop func()
	// Stdin begins to read standard input. Rewind ends that, and returns to its start for another
	// run, or reports false if that is impossible.
	Stdin  func() <-chan Input
	Rewind func() bool
	// Inherited reports that agents on this machine have inherited standard input, and may pass it
	// on.
	Inherited bool
	// Questions are questions about the job, such as gompirun ps's; nil for none.
	Questions <-chan monitor.Question
	// Sweep kills the agents in lost and the processes that they have left on this machine. The
	// agents in living and their descendants are spared.
	Sweep func(living, lost []int)
	// Process returns a process of this machine to look at.
	Process func(pid int) Process
	// Began is called when all ranks run, in each run; nil for nothing.
	Began func()
	// Screen gets all that is written to Stdout and Stderr; nil for none.
	Screen *monitor.Tail
}

// A Process is a process that the job looks at now and then.
type Process interface {
	Look() string // obstacle to its running, since the last look at least; "" for none
}

// A Node is one of the nodes of a job with a gompirun on each.
type Node struct {
	Environ []string
	Program ctl.Program
	Ranks   string // number of its ranks, by -nproc-per-node; "" if not given
}

// A Job is one job. The goroutine that called Run makes all decisions; links, signals and input
// send events. The exported fields are set before Run.
type Job struct {
	Source   string // origin of the hosts
	Hosts    []hostfile.Host
	Programs []plan.Program
	Nodes    map[string]*Node // by host, if gompirun was started on each; otherwise nil

	system  *System
	spec    *cmdline.Spec
	id      string
	secret  [32]byte
	begun   time.Time
	plan    *plan.Plan
	hosts   []*host
	send    func(hosts []int, m ctl.Message)
	nodes   int // hosts with ranks
	upHosts int // hosts whose ranks run
	events  chan link.Event
	done    chan struct{} // closed when events is no longer read
	out     *output.Writer
	input   *input
	stdin   <-chan Input   // nil before reading
	offer   *program.Offer // nil before its files are read
	signals <-chan os.Signal
	timer   <-chan time.Time // the job's time limit
	heart   heart

	cards     [][]byte        // by rank; nil before they come
	cardHosts int             // hosts whose cards have come
	revoked   map[uint64]bool // communicators revoked by ranks
	leaving   failure.Leaving
	lone      map[int]bool // ranks that are jobs of one, and whether that is a failure
	fences    fences
	recover   recovery
	watch     stall.Watch
	stacks    lastStacks
	end       shutdown
	later     failure.Others
	attempt   attempt

	statistics *report.Collector // of all runs; nil without -stats and -trace
	questions  questions
}

// New returns a job that spec describes, without hosts yet.
func New(spec *cmdline.Spec, system *System) *Job {
	j := &Job{spec: spec, system: system, begun: time.Now(), events: make(chan link.Event, 64),
		done: make(chan struct{}), revoked: map[uint64]bool{}, input: &input{ended: true}}
	j.attempt.first = j.begun
	j.watch = stall.Watch{Warning: spec.Stall.Warning, Quiet: spec.Quiet, Stacks: spec.Stall.Stacks, Agents: j.surveyed,
		Log: j.notef, Named: j.recover.Original}
	j.id, j.secret = boot.NewJob()
	j.attempt.ids = []string{j.id}
	if j.attempt.name = spec.RunID; j.attempt.name == "" {
		j.attempt.name = j.id
	}
	j.out = output.New(system.Stdout, system.Stderr)
	j.out.Colour, j.out.Copy = system.Colour, system.Screen
	j.out.Tag, j.out.Stamp, j.out.Prefix, j.out.Shown = spec.Output.Tag, spec.Output.Stamp, spec.Output.Prefix,
		spec.Output.LocalRanks
	j.out.Fail = func(err error) { j.notef("output is lost: %v", err) }
	return j
}

// ID returns the id of this run, which in the first run is the job's.
func (j *Job) ID() string { return j.id }

// Note prints a line for the user, except with -q.
func (j *Job) Note(line string) { j.notef("%s", line) }

// Explain prints a line for users who want details (-v).
func (j *Job) Explain(format string, args ...any) { j.verbosef(format, args...) }

// Run runs the job, and restarts the job as -max-restarts allows. Run blocks until all agents
// have ended. The results are the exit status, and the reason for the job's end as printed last.
func (j *Job) Run() (status int, lastWords string) {
	j.signals = j.system.Signals()
	for status = j.run(); j.attempt.next != nil; status = j.run() {
		j = j.attempt.next
	}
	return status, j.end.lastWords
}

// Fail is called instead of Run if there is no job. Fail prints the reason, and returns the same
// as Run.
func (j *Job) Fail(err error) (status int, lastWords string) {
	return j.failToStart(err), j.end.lastWords
}

// run runs the job once and returns its exit status.
func (j *Job) run() int {
	defer close(j.done)
	if j.spec.Timeout > 0 {
		j.timer = time.After(j.timeLeft())
	}
	err := j.startAgents()
	if j.end.cause != nil { // by a signal, or the time limit
		j.endAgents()
		return j.conclude()
	}
	if err == nil {
		err = j.mapRanks()
	}
	if err == nil {
		err = j.prepareOutput()
	}
	if err == nil && !j.spec.Report.DoNotLaunch {
		err = j.openStats()
	}
	if err != nil {
		return j.failToStart(err)
	}
	if j.spec.Report.DoNotLaunch {
		return j.leaveAtThat()
	}
	err = j.awaitOffer()
	defer j.offer.Close()
	if err != nil {
		return j.failToStart(err)
	}
	j.launch()
	j.serve()
	j.watch.Conclude()
	j.endAgents()
	return j.conclude()
}

// mapRanks decides where each rank runs.
func (j *Job) mapRanks() error {
	hosts := inventory.PlanHosts(j.Hosts, entries(j.hosts))
	if err := j.addGPUs(hosts); err != nil {
		return err
	}
	if err := j.size(hosts); err != nil {
		return err
	}
	var err error
	j.plan, err = plan.Map(hosts, j.Programs, j.spec.Policy)
	return err
}

// prepareOutput makes the folders of the ranks' files and reports the plan.
func (j *Job) prepareOutput() error {
	if err := j.setFiles(); err != nil {
		return err
	}
	if r := j.spec.Stdin.Rank; r >= len(j.plan.Ranks) {
		return fmt.Errorf("-stdin %d: want a rank from 0 to %d, all or none", r, len(j.plan.Ranks)-1)
	}
	if j.spec.Report.Map {
		j.out.Log(fmt.Sprintf("hosts: %s\n%s", j.Source, j.plan.Display()))
	}
	for _, n := range j.plan.Notes {
		j.notef("%s", n)
	}
	return nil
}

// leaveAtThat ends a job that is only shown, not started (-do-not-launch).
func (j *Job) leaveAtThat() int {
	j.notef("-do-not-launch: %d ranks are not started", len(j.plan.Ranks))
	j.endAgents()
	return j.conclude()
}

// serve handles events until all agents' work is done.
func (j *Job) serve() {
	defer j.startBeats()()
	j.questions.served = true
	defer j.leaveQuestions()
	for !j.allDrained() {
		select {
		case e := <-j.events:
			j.handle(e)
		case s := <-j.signals:
			j.signalled(s)
		case in := <-j.input.chunks():
			j.passInput(in)
		case q := <-j.system.Questions:
			j.askedFor(q)
		case <-j.questions.round.Late:
			j.describe()
		case <-j.watch.Late:
			j.watch.Conclude()
		case <-j.watch.Repeat:
			j.watch.Warn()
		case <-j.watch.RunOn:
			if j.end.cause == nil {
				j.watch.Survey()
			}
		case <-j.heart.beats:
			j.beat()
		case <-j.timer:
			j.outOfTime()
		case <-j.stacks.late:
			j.endForTime()
		case <-j.end.overdue:
			j.giveUpAll()
		case <-j.end.looks:
			j.giveUpReader()
		}
	}
}

func (j *Job) allDrained() bool {
	for _, h := range j.hosts {
		if !h.drained {
			return false
		}
	}
	return true
}

// handle handles one message of an agent, or its end.
func (j *Job) handle(e link.Event) {
	h := j.hosts[e.Host]
	if e.Err != nil {
		j.lost(h, e.Err)
		return
	}
	switch m := e.Message.(type) {
	case *ctl.Output:
		m.Rank = j.recover.Original(m.Rank)
		j.out.Write(m, func(n int) { h.Send(&ctl.Credit{Bytes: n}) })
	case *ctl.Consumed:
		j.input.consumed(h, m.Bytes)
	case *ctl.Want:
		go func() { h.Send(j.offer.Piece(m)) }() // until it is read: a file system may be slow
	case *ctl.Started:
		j.started(h, m)
	case *ctl.Failed:
		j.failed(h, m)
	case *ctl.Cards:
		j.gather(h, m)
	case *ctl.FromRank:
		j.handleRank(h, m)
	case *ctl.Alone:
		j.alone(h, m)
	case *ctl.Exited:
		j.exited(h, m)
	case *ctl.Fence:
		j.fence(m)
	case *ctl.Doing:
		if m.Counts {
			j.answerQuestions(h, m)
			j.counted(h, m)
		} else {
			j.watch.Answered(h, m)
		}
	case *ctl.Figures:
		j.gotFigures(h, m)
	case *ctl.Events:
		j.gotEvents(h, m)
	case *ctl.Pong:
		h.ponged(m, j.clock())
	case *ctl.Stacks:
		j.watch.Stack(h, m)
		j.gotStacks(m.Rank)
	case *ctl.Stalled:
		j.watch.Stalled(h, m, j.end.cause != nil)
	case *ctl.Drained:
		h.crashed(m)
		j.gone(h)
		if m.Killed > 0 && j.end.cause == nil {
			j.notef("%s: processes that ranks left behind, and were killed: %d", h.Name(), m.Killed)
		}
	default:
		j.note(h, m)
	}
}

// handleRank handles a message of a rank.
func (j *Job) handleRank(h *host, from *ctl.FromRank) {
	m, err := wire.Parse(from.Frame)
	switch m := m.(type) {
	case *wire.Revoke:
		j.revoke(world.Rank(from.Rank), m)
	case *wire.Inquire:
		j.leaving.Inquire(h, int(m.Rank), h.pulse.clock.Ours(from.Time), j.end.cause == nil)
	case *wire.Leave:
		j.leaving.Left(from.Rank)
	case *wire.Vote:
		j.voted(h, world.Rank(from.Rank), m)
	case *wire.Card:
		j.introduce(h, from.Rank, m.Data)
	case *wire.Abort:
		j.aborted(h, from, m)
	default:
		j.notef("%s: rank %d sends a message %T (%v), which no rank sends", h.Name(), from.Rank, m, err)
	}
}

// gone notes that a host's work is done.
func (j *Job) gone(h *host) {
	h.drained = true
	j.watch.Gone(h)
	if j.questions.round.Gone(h) {
		j.describe()
	}
	j.input.gone(h)
}

// started notes that the ranks of a host run.
func (j *Job) started(h *host, m *ctl.Started) {
	j.upHosts++
	j.verbosef("%d ranks run on %s after %v", len(m.PIDs), h.Name(), time.Since(j.begun).Round(time.Millisecond))
	if j.upHosts == j.nodes && j.system.Began != nil {
		j.system.Began()
	}
	for i, cpus := range m.CPUs {
		if i < len(h.ranks) {
			j.out.Log(fmt.Sprintf("gompirun: rank %d on %s: %s%s", h.ranks[i], h.Name(), bindingText(cpus, h.Hello.Cores),
				j.plan.GPUText(h.ranks[i])))
		}
	}
}

// bindingText describes a rank's binding as reported by the kernel.
func bindingText(cpus []int, cores [][]int) string {
	if len(cpus) == len(slices.Concat(cores...)) {
		return "not bound (cpus " + plan.Ranges(cpus) + ")"
	}
	return "bound to cpus " + plan.Ranges(cpus)
}

// gather collects the cards of one host. After the last host all cards go to all.
func (j *Job) gather(h *host, m *ctl.Cards) {
	if len(m.Data) != len(h.ranks) {
		j.notef("%s: %d cards of %d ranks", h.Name(), len(m.Data), len(h.ranks))
		return
	}
	for i, r := range h.ranks {
		j.cards[r] = m.Data[i]
	}
	j.cardHosts++
	j.refuseMixture()
	if j.cardHosts == j.nodes {
		j.broadcast(&ctl.Gathered{Frame: wire.Append(nil, &wire.Cards{Data: j.cards})})
		j.verbosef("ranks have met after %v", time.Since(j.begun).Round(time.Millisecond))
	}
}

// revoke notifies all ranks that one of them broke a communicator, unless another host has
// already reported that.
func (j *Job) revoke(rank world.Rank, m *wire.Revoke) {
	if !j.revoked[m.Comm] {
		j.revoked[m.Comm] = true
		j.broadcast(ctl.NewToRanks(&wire.Revoked{Rank: rank, Comm: m.Comm, Cause: m.Cause}))
	}
}

// note prints an agent's note for the user.
func (j *Job) note(h *host, m ctl.Message) {
	if n, ok := m.(*ctl.Note); ok {
		j.notef("%s: %s", h.Name(), n.Text)
	}
}

func (j *Job) notef(format string, args ...any) {
	if !j.spec.Quiet {
		j.out.Log("gompirun: " + fmt.Sprintf(format, args...))
	}
}

func (j *Job) verbosef(format string, args ...any) {
	if j.spec.Verbose {
		j.out.Log("gompirun: " + fmt.Sprintf(format, args...))
	}
}

// fences is the state of the barrier of PMI-1 clients. A host reports once that all its ranks are
// in the barrier, and then waits.
type fences struct {
	arrived int
	puts    []string // keys and values in turn
}

// fence notes that all ranks of a host are in the barrier. The last host releases all, with the
// values put by all ranks.
func (j *Job) fence(m *ctl.Fence) {
	j.fences.puts = append(j.fences.puts, m.Puts...)
	j.fences.arrived++
	j.refuseMixture()
	if j.fences.arrived == j.nodes {
		j.broadcast(&ctl.Fenced{Puts: j.fences.puts})
		j.fences = fences{}
	}
}

// refuseMixture ends a job in which ranks of some hosts wire up over PMI-1 and ranks of others
// like gompi programs. Agents check the ranks of one host.
func (j *Job) refuseMixture() {
	if j.fences.arrived > 0 && j.cardHosts > 0 {
		j.endFor(&failure.Cause{
			Status: StatusFailed,
			Text:   "some ranks are of gompi and some of another MPI library: they wait for each other in vain",
		})
	}
}
