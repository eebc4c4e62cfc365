package agent

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/boot"
	"gompi/internal/boot/pmi"
	"gompi/internal/env"
	"gompi/internal/machine"
	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/hostinfo"
	"gompi/mpirun/internal/proc"
	"gompi/mpirun/internal/program"
)

// start starts all ranks, or none. After a failure the rank that could not be started is
// reported, and the others are ended.
func (a *agent) start(l *ctl.Launch) {
	if a.launch != nil || len(l.Ranks) == 0 || len(l.Programs) == 0 || l.Node >= l.Nodes ||
		len(a.layout.Hosts) != l.Nodes {
		rank := append(l.Ranks, ctl.Rank{})[0].Rank // 0 for an order without ranks
		a.report(&ctl.Failed{Rank: rank, Code: program.CannotStart, Text: fmt.Sprintf(
			"an order to start %d ranks of %d programs on host %d of %d, to an agent that knows %d hosts and has %d ranks",
			len(l.Ranks), len(l.Programs), l.Node, l.Nodes, len(a.layout.Hosts), len(a.ranks))})
		return
	}
	a.launch, a.memory = l, machine.WatchKills("/")
	a.output.Window, a.output.Merge = l.Window, l.Merge
	if l.Size == 1 {
		proc.SetName(boot.AgentOfOne)
	}
	a.nodeEnv = a.node()
	if l.Nodes > 1 { // by default gloo takes the address of the host's own name, often loopback
		if name := hostinfo.InterfaceTo(l.MasterAddr); name != "" {
			a.gloo = []string{env.GlooInterface + "=" + name}
		}
	}
	a.pmi.Callbacks, a.pmi.JobID, a.pmi.Size, a.pmi.Placement = a, l.JobID, l.Size, a.layout.Placement
	for i, r := range l.Ranks {
		a.add(r)
		a.pmi.Clients = append(a.pmi.Clients, a.ranks[i].pmi.Client)
	}
	a.prepare(func() (*ctl.Want, int, error) { return a.preparation.Begin(l) })
}

// add adds a rank without starting it.
func (a *agent) add(r ctl.Rank) *process {
	p := &process{Rank: r, index: len(a.ranks), pidfd: -1, boot: -1, stdin: -1, in: rankFrames(),
		pmi: client{Client: &pmi.Client{Rank: r.Rank, Program: r.Program}, fd: -1}}
	p.original, p.output = p.index, a.output.Add(r.Rank, p.running)
	a.ranks, a.local[r.Rank] = append(a.ranks, p), p.index
	return p
}

// begin starts the ranks. A non-nil err is the reason why a rank cannot be started.
func (a *agent) begin(rank int, err error) {
	if err == nil {
		rank, err = a.startAll()
	}
	if err != nil {
		err = proc.NameLimitOfRanks(err, len(a.ranks))
		a.report(&ctl.Failed{Rank: rank, Code: program.Status(err), Text: err.Error()})
		a.killAll()
		return
	}
	a.reportStarted()
	go program.KeepUsed(a.preparation.Files()) // until the process ends
	if a.launch.Size > 1 {
		a.started = time.Now()
		a.nextAlone = a.started.Add(aloneLook)
	}
}

// startAll returns a rank that could not be started, and the error.
func (a *agent) startAll() (int, error) {
	first := a.launch.Ranks[0].Rank
	if err := a.makeShared(); err != nil {
		return first, err
	}
	if !a.launch.KeepChildren { // a group cannot be removed while processes in it live on
		a.group = proc.NewGroup()
	}
	for _, p := range a.ranks {
		prog := a.preparation.Programs[p.Program]
		if err := a.spawn(p, prog, a.variables(p, prog)); err != nil {
			return p.Rank.Rank, err
		}
		a.alive++
	}
	a.affinity.Bind(nil)
	if a.launch.MasterPort != a.hello.Port && a.held >= 0 {
		unix.Close(a.held)
		a.held = -1
	}
	return 0, nil
}

// variables returns the environment of a rank, defaults first. A replacement has the environment
// of its original, except for its place on this host.
func (a *agent) variables(p *process, prog *program.Program) []string {
	node := a.nodeEnv
	place := []string{fmt.Sprintf("%s=%d", env.LocalRank, p.index)}
	if a.launch.Virtual {
		place = append(place, env.TorchLocalRank+"=0")
	}
	return program.MergeEnv(program.ThreadEnv(len(p.CPUs), a.launch.Cores, a.hello.Quota, len(a.launch.Ranks)), a.gloo,
		[]string{env.TorchErrorFile + "=" + a.records.File(p.index)}, prog.Env, program.GPUEnv(p.GPUs),
		node.Slurm(p.original, prog.Env), node.Identity(p.original), a.descriptors(), place)
}

// makeShared makes the objects shared by the ranks of this host.
func (a *agent) makeShared() error {
	ranks := make([]world.Rank, len(a.ranks), a.places())
	for i, p := range a.ranks {
		ranks[i] = world.Rank(p.Rank.Rank)
	}
	for len(ranks) < a.places() {
		ranks = append(ranks, world.Rank(a.placeOf(len(ranks))))
	}
	if !slices.IsSorted(ranks) {
		return fmt.Errorf("ranks %v: want them in ascending order", ranks)
	}
	a.affinity = proc.OwnAffinity()
	var err error
	if a.segment, err = seg.New(ranks); err != nil {
		return err
	}
	a.segment.SetJobSize(a.launch.Size)
	if err := a.makeStats(ranks); err != nil {
		return err
	}
	if err := a.segment.Without(); err != nil && len(ranks) > 1 {
		a.note("no shared memory: ranks of this host use TCP: %v", err)
	}
	if a.bells, err = seg.NewBells(len(ranks), proc.FirstBell); err != nil {
		return fmt.Errorf("doorbells: %w", err)
	}
	proc.RaiseLimits(len(ranks))
	return a.listen()
}

func (a *agent) reportStarted() {
	m := &ctl.Started{}
	for _, p := range a.ranks {
		m.PIDs = append(m.PIDs, p.pid)
		if a.launch.Bindings {
			m.CPUs = append(m.CPUs, hostinfo.CPUs(p.pid))
		}
	}
	a.report(m)
}

// A preparation is under way until the ranks are started.
type preparation struct {
	program.Preparation // not for the loop while a step is under way
	underWay            bool
	since               time.Time // beginning of the current step; zero without one, or if reported
	input               [][]byte  // received before the ranks were started
}

// prepare runs a step of the preparation in the background. After the last step the ranks are
// started.
func (a *agent) prepare(step func() (want *ctl.Want, rank int, err error)) {
	a.preparation.underWay, a.preparation.since = true, time.Now()
	a.loop.Aside(func() func() {
		want, rank, err := step()
		return func() { a.prepared(want, rank, err) }
	})
}

// stepTime is the duration of a step after which the user is notified.
const stepTime = 5 * time.Second

// slowAt returns when the current step will be slow, zero without a step.
func (p *preparation) slowAt() time.Time {
	if p.since.IsZero() {
		return p.since
	}
	return p.since.Add(stepTime)
}

// reportSlow reports a slow step, once.
func (a *agent) reportSlow(now time.Time) {
	if t := a.preparation.slowAt(); t.IsZero() || now.Before(t) {
		return
	}
	a.preparation.since = time.Time{}
	a.note("ranks are not started yet: for %v programs, folders and files have been looked at, as those of %q. "+
		"Are they large, or does a file system not answer?",
		stepTime, a.launch.Programs[a.launch.Ranks[0].Program].Argv[0])
}

// prepared sends the request want, or else starts the ranks. A non-nil err is the reason why a
// rank cannot be started.
func (a *agent) prepared(want *ctl.Want, rank int, err error) {
	a.preparation.since = time.Time{}
	if a.end.ordered {
		return
	}
	if want != nil && err == nil {
		a.report(want)
		return
	}
	for _, w := range a.preparation.Warnings {
		a.note("%s", w)
	}
	a.preparation.underWay = false
	a.begin(rank, err)
	for _, data := range a.preparation.input {
		a.input(data)
	}
	a.preparation.input = nil
}

// take takes a piece of a fetched file.
func (a *agent) take(data []byte) {
	if !a.preparation.underWay || a.end.ordered {
		return
	}
	data = bytes.Clone(data)
	a.prepare(func() (*ctl.Want, int, error) { return a.preparation.Take(data) })
}
