package mpirun

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	"gompi/hostfile"
	"gompi/internal/boot"
	"gompi/internal/boot/wire"
	"gompi/mpirun/internal/allocation"
	"gompi/mpirun/internal/attach"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/launchenv"
	"gompi/mpirun/internal/output"
	"gompi/mpirun/internal/plan"
	"gompi/mpirun/internal/remote"
	"gompi/mpirun/internal/stall"
)

// window is how much output of one host may be on its way here.
const window = 1 << 20

// A job is one run. Everything is decided in the goroutine that called run; the
// links, the signals and the input bring it events.
type job struct {
	spec   *cmdline.Spec
	id     string
	secret [32]byte
	begun  time.Time
	before []int // children that this process had already

	source   *allocation.Allocation // of hosts
	hosts    []hostfile.Host
	programs []plan.Program
	plan     *plan.Plan
	links    []*link // by host
	nodes    int     // hosts that have ranks
	events   chan event
	done     chan struct{} // closed when nobody takes events any more
	out      *output.Writer
	input    *input
	offer    *offer // nil before it has been made
	signals  *signals
	timer    <-chan time.Time // the job's time limit
	heart    *time.Ticker     // nil if none beats
	beats    <-chan time.Time // its

	stdinData chan []byte // what has been read of standard input, nil before it is

	cards   [][]byte        // by rank; nil until they have come
	came    int             // links whose cards have come
	revoked map[uint64]bool // communicators, as their ranks have said
	fences  fences
	meeting *meeting // of nodes that were started one by one; nil if they were not
	watch   stall.Watch
	ending
	lastStacks
	life
}

// run runs the job and returns its exit status.
func (j *job) run(starter remote.Starter) int {
	defer close(j.done)
	if j.spec.Timeout > 0 {
		j.timer = time.After(j.timeLeft())
	}
	err := j.startAgents(starter)
	if j.cause != nil { // a signal has come, or the time limit
		j.endAgents()
		return j.conclude()
	}
	if err != nil {
		return j.failToStart(err)
	}
	hosts := planHosts(j.hosts, j.links)
	if err = j.addGPUs(hosts); err != nil {
		return j.failToStart(err)
	}
	if err = j.size(hosts); err != nil {
		return j.failToStart(err)
	}
	if j.plan, err = plan.Map(hosts, j.programs, j.spec.Policy); err != nil {
		return j.failToStart(err)
	}
	if err := j.prepareOutput(); err != nil {
		return j.failToStart(err)
	}
	if j.spec.Report.DoNotLaunch {
		return j.leaveAtThat()
	}
	err = j.awaitOffer()
	defer j.offer.close()
	if err != nil {
		return j.failToStart(err)
	}
	j.launch()
	j.serve()
	j.watch.Conclude()
	j.endAgents()
	return j.conclude()
}

// prepareOutput makes the folder of the ranks' files and tells what is planned.
func (j *job) prepareOutput() error {
	if err := j.setFiles(); err != nil {
		return err
	}
	if r := j.spec.Stdin.Rank; r >= len(j.plan.Ranks) {
		return fmt.Errorf("-stdin %d: want a rank from 0 to %d, all or none", r, len(j.plan.Ranks)-1)
	}
	if j.spec.Report.RankMap {
		j.out.Print(j.plan.RankMap())
	}
	if j.spec.Report.Map {
		var b strings.Builder
		fmt.Fprintf(&b, "hosts: %s\n", j.source.From)
		j.plan.Display(&b)
		j.out.Say(strings.TrimSuffix(b.String(), "\n"))
	}
	for _, n := range j.plan.Notes {
		j.notef("%s", n)
	}
	return nil
}

// leaveAtThat ends a job of which all is known, and nothing is to be started.
func (j *job) leaveAtThat() int {
	j.notef("-do-not-launch: %d ranks are not started", len(j.plan.Ranks))
	j.endAgents()
	return j.conclude()
}

// launch tells every agent which ranks to start. Hosts without a rank are no
// nodes of the job; their agents have done all they had to do.
func (j *job) launch() {
	nodes := make([]*link, 0, len(j.links))
	names := make([]string, 0, len(j.links))
	var counts []int // of ranks, by node
	nodeOf := make([]int, len(j.plan.Ranks))
	for host, l := range j.links {
		if l.ranks = j.plan.Local[host]; len(l.ranks) == 0 {
			l.drained = true
			continue
		}
		for _, r := range l.ranks {
			nodeOf[r] = len(nodes)
		}
		nodes, names, counts = append(nodes, l), append(names, l.host), append(counts, len(l.ranks))
	}
	j.cards = make([][]byte, len(j.plan.Ranks))
	j.input = newInput(j.spec.Stdin, nodes)
	if j.stdinData == nil {
		j.stdinData = j.input.start(os.Stdin)
	}
	j.input.ch = j.stdinData
	common := ctl.Launch{
		JobID: j.id, Secret: j.secret, Size: len(nodeOf), Placement: wire.Runs(nodeOf), Hosts: names,
		MasterAddr: masterAddr(nodes, nodeOf[0]), MasterPort: nodes[nodeOf[0]].hello.Port, Dir: workingDir(),
		Window: window, StallWarning: j.spec.Stall.Warning, Stacks: j.spec.Stall.Stacks || j.spec.Stall.GetStacks,
		Stdin: wireStdin(j.spec.Stdin), Bindings: j.spec.Report.Bindings, Merge: j.spec.Output.Merge, Env: j.environment(os.Environ()),
	}
	for _, p := range j.spec.Programs {
		common.Programs = append(common.Programs, wireProgram(p))
	}
	j.offer.describe(&common)
	common.MasterAddr = cmp.Or(j.spec.Master.Addr, common.MasterAddr)
	common.MasterPort = cmp.Or(j.spec.Master.Port, common.MasterPort)
	j.tellReplaced(&launchenv.Node{Hosts: names, Counts: counts, MasterAddr: common.MasterAddr, MasterPort: common.MasterPort})
	for node, l := range nodes {
		m := common
		m.Remote = !l.agent.Here()
		j.meeting.localize(&m, l.host, j)
		m.Node, m.Cores = node, len(j.plan.Hosts[l.index].Cores)
		for _, r := range l.ranks {
			p := j.plan.Ranks[r]
			m.Ranks = append(m.Ranks, ctl.Rank{Rank: r, Program: p.Prog, CPUs: p.CPUs, GPUs: j.plan.Visible(r)})
		}
		if !l.here() { // whose end needs no heartbeat to be noticed
			m.Heartbeat = j.spec.Heartbeat
			l.ping()
		}
		l.Send(&m)
	}
	j.nodes = len(nodes)
}

// wireProgram says to agents what a part of the command line says.
func wireProgram(p cmdline.Program) ctl.Program {
	return ctl.Program{Argv: p.Argv, Env: p.Env, Wdir: p.Wdir}
}

// serve handles events until every agent has done all it had to do.
func (j *job) serve() {
	defer j.startBeats()()
	asked := attach.Serve(j.id)
	defer asked.Close()
	for !j.allDrained() {
		select {
		case e := <-j.events:
			j.handle(e)
		case s := <-j.signals.c:
			j.signalled(s)
		case data := <-j.input.chunks():
			j.input.pass(data)
		case q := <-asked.Questions:
			j.askedFor(q)
		case <-j.watch.Late:
			j.watch.Conclude()
		case <-j.watch.Again:
			j.watch.Warn()
		case <-j.beats:
			j.beat()
		case <-j.timer:
			j.outOfTime()
		case <-j.stacksLate:
			j.endForTime()
		case <-j.looks:
			j.giveUpReader()
		}
	}
}

func (j *job) allDrained() bool {
	for _, l := range j.links {
		if !l.drained {
			return false
		}
	}
	return true
}

// handle handles one message of an agent, or its end.
func (j *job) handle(e event) {
	l := e.link
	if e.err != nil {
		j.lost(l, e.err)
		return
	}
	switch m := e.m.(type) {
	case *ctl.Output:
		j.out.Write(m, func(n int) { l.Send(&ctl.Credit{Bytes: n}) })
	case *ctl.Consumed:
		j.input.consumed(l, m.Bytes)
	case *ctl.Want:
		j.give(l, m)
	case *ctl.Started:
		j.started(l, m)
	case *ctl.Failed:
		j.failed(l, m)
	case *ctl.Cards:
		j.gather(l, m)
	case *ctl.Revoke:
		if j.revoked[m.Comm] {
			break // another host has said it
		}
		j.revoked[m.Comm] = true
		j.broadcast(&ctl.Revoked{Rank: m.Rank, Comm: m.Comm, Cause: m.Cause})
	case *ctl.Abort:
		j.aborted(l, m)
	case *ctl.Exited:
		j.exited(l, m)
	case *ctl.Fence:
		j.fence(m)
	case *ctl.Doing:
		j.tellWhere(l, m)
		j.watch.Answered(l, m)
	case *ctl.Pong:
		l.ponged(m, time.Now().UnixNano())
	case *ctl.Stacks:
		j.watch.Stack(l, m)
		j.heardStacks(m.Rank)
	case *ctl.Stalled:
		j.watch.Stalled(l, m, j.cause != nil)
	case *ctl.Drained:
		l.drained = true
		j.watch.Gone(l)
		if m.Killed > 0 && j.cause == nil {
			j.notef("%s: processes that ranks left behind, and were killed: %d", l.host, m.Killed)
		}
	default:
		j.note(l, m)
	}
}

// started notes that the ranks of a host run.
func (j *job) started(l *link, m *ctl.Started) {
	j.verbosef("%d ranks run on %s after %v", len(m.PIDs), l.host, time.Since(j.begun).Round(time.Millisecond))
	for i, cpus := range m.CPUs {
		if i < len(l.ranks) {
			j.out.Say(fmt.Sprintf("gompirun: rank %d on %s: %s%s", l.ranks[i], l.host, bindingText(cpus, l.hello.Cores), j.plan.GPUText(l.ranks[i])))
		}
	}
}

// bindingText describes what the kernel says a rank is bound to.
func bindingText(cpus []int, cores [][]int) string {
	all := 0
	for _, c := range cores {
		all += len(c)
	}
	if len(cpus) == all {
		return "not bound (cpus " + plan.Ranges(cpus) + ")"
	}
	return "bound to cpus " + plan.Ranges(cpus)
}

// gather collects the cards of one host; the last gives everybody all of them.
func (j *job) gather(l *link, m *ctl.Cards) {
	if len(m.Data) != len(l.ranks) {
		j.notef("%s: %d cards of %d ranks", l.host, len(m.Data), len(l.ranks))
		return
	}
	for i, r := range l.ranks {
		j.cards[r] = m.Data[i]
	}
	j.came++
	j.refuseMixture()
	if j.came == j.nodes {
		j.broadcast(&ctl.Gathered{Data: j.cards})
		j.verbosef("ranks have met after %v", time.Since(j.begun).Round(time.Millisecond))
	}
}

// broadcast sends m to every agent that has ranks.
func (j *job) broadcast(m ctl.Message) {
	for _, l := range j.links {
		if len(l.ranks) > 0 && !l.drained {
			l.Send(m)
		}
	}
}

// surveyed returns the hosts that have ranks whose agents still answer.
func (j *job) surveyed() []stall.Host {
	var hosts []stall.Host
	for _, l := range j.links {
		if len(l.ranks) > 0 && !l.drained {
			hosts = append(hosts, l)
		}
	}
	return hosts
}

// note passes on what an agent wants the user to know.
func (j *job) note(l *link, m ctl.Message) {
	if n, ok := m.(*ctl.Note); ok {
		j.notef("%s: %s", l.host, n.Text)
	}
}

func (j *job) notef(format string, args ...any) {
	if !j.spec.Quiet {
		j.out.Say("gompirun: " + fmt.Sprintf(format, args...))
	}
}

func (j *job) verbosef(format string, args ...any) {
	if j.spec.Verbose {
		j.out.Say("gompirun: " + fmt.Sprintf(format, args...))
	}
}

// newJob names a job.
func newJob(spec *cmdline.Spec, stdout, stderr *os.File) *job {
	j := &job{spec: spec, begun: time.Now(), events: make(chan event, 64), done: make(chan struct{}), signals: &signals{}, revoked: map[uint64]bool{}}
	j.first = j.begun
	j.watch = stall.Watch{Warning: spec.Stall.Warning, Quiet: spec.Quiet, Stacks: spec.Stall.Stacks, Hosts: j.surveyed, Say: j.notef}
	j.id, j.secret = boot.NewJob()
	if j.name = spec.RunID; j.name == "" {
		j.name = j.id
	}
	j.out = output.New(stdout, stderr)
	j.out.Tag, j.out.Stamp, j.out.Prefix = spec.Output.Tag, spec.Output.Stamp, spec.Output.Prefix
	j.out.Fail = func(err error) { j.notef("output is lost: %v", err) }
	return j
}
