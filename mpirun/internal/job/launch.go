package job

import (
	"cmp"
	"errors"
	"slices"

	"gompi/internal/boot/wire"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/inventory"
	"gompi/mpirun/internal/program"
)

// window is the most bytes of a host's output on their way to the launcher.
const window = 1 << 20

// launch orders every agent to start its ranks. Hosts without ranks are no nodes of the job; the
// work of their agents is done.
func (j *Job) launch() {
	nodes := make([]*host, 0, len(j.hosts))
	names := make([]string, 0, len(j.hosts))
	var counts []int // of ranks, by node
	nodeOf := make([]int, len(j.plan.Ranks))
	for host, h := range j.hosts {
		if h.ranks = j.plan.Local[host]; len(h.ranks) == 0 {
			h.drained = true
			continue
		}
		for _, r := range h.ranks {
			nodeOf[r] = len(nodes)
		}
		nodes, names, counts = append(nodes, h), append(names, h.Name()), append(counts, len(h.ranks))
	}
	j.recover.prepare(nodes, nodeOf, j.spec.Policy.Spares)
	j.cards = make([][]byte, j.recover.Ranks())
	j.chooseInput()
	j.input = j.newInput(nodes)
	if j.stdin == nil && !j.input.ended {
		j.stdin = j.system.Stdin()
	}
	j.input.ch = j.stdin
	common := ctl.Launch{
		JobID: j.id, Secret: j.secret, Size: len(nodeOf), Nodes: len(nodes),
		MasterAddr: inventory.MasterAddr(entries(nodes), nodeOf[0]), MasterPort: nodes[nodeOf[0]].Hello.Port,
		Dir: j.system.Dir, Window: window, StallWarning: j.spec.Stall.Warning, Stacks: j.spec.Stall.Stacks,
		Stdin: wireStdin(j.attempt.takes), Bindings: j.spec.Report.Bindings, Merge: j.spec.Output.Merge,
		Recover: j.spec.Recover, Spares: j.spec.Policy.Spares,
		Stats: j.spec.Stats.On(), Trace: j.spec.Stats.Trace != "",
		KeepChildren: j.spec.KeepChildren, Virtual: j.spec.VirtualLocalRank, MPILib: string(j.spec.MPILib),
		MPIFolder: j.system.MPIFolder, Env: j.environment(j.system.Environ),
	}
	for _, p := range j.spec.Programs {
		common.Programs = append(common.Programs, WireProgram(p))
	}
	j.offer.Describe(&common)
	common.MasterAddr = cmp.Or(j.spec.Master.Addr, common.MasterAddr)
	common.MasterPort = cmp.Or(j.spec.Master.Port, common.MasterPort)
	j.reportReplaced(&program.Node{Hosts: names, Counts: counts, MasterAddr: common.MasterAddr,
		MasterPort: common.MasterPort})
	j.broadcast(&ctl.Layout{Placement: wire.Runs(nodeOf), Hosts: names})
	for node, h := range nodes {
		m := common
		m.Remote, m.Inherit, m.Srun = !h.Started.Here, j.inherits(h), h.Started.Srun
		if n := j.Nodes[h.Name()]; n != nil { // its own gompirun's program and environment
			m.Remote, m.Env, m.Programs = false, j.environment(n.Environ), []ctl.Program{n.Program}
		}
		j.attempt.tookInput = j.attempt.tookInput || m.Inherit
		m.Node, m.Cores = node, len(j.plan.Hosts[h.Index].Cores)
		for _, r := range h.ranks {
			p := j.plan.Ranks[r]
			m.Ranks = append(m.Ranks, ctl.Rank{Rank: r, Program: p.Prog, CPUs: p.CPUs, GPUs: j.plan.Visible(r)})
		}
		if !h.Here() { // a heartbeat is needed to notice its end
			m.Heartbeat = j.spec.Heartbeat
			h.ping(j.clock())
		}
		h.Send(&m)
	}
	j.nodes = len(nodes)
	if j.statistics != nil {
		j.statistics.Run()
	}
}

// WireProgram encodes a part of the command line for agents.
func WireProgram(p cmdline.Program) ctl.Program {
	return ctl.Program{Argv: p.Argv, Env: p.Env, Wdir: p.Wdir}
}

// awaitOffer reads the programs and files to be preloaded. awaitOffer returns an error, too, if
// the job is about to end.
func (j *Job) awaitOffer() error {
	mpi := "" // folder of libraries that other hosts may need
	if slices.ContainsFunc(j.hosts, func(h *host) bool { return !h.Here() }) {
		mpi = j.system.MPIFolder
	}
	open := func() (*program.Offer, error) {
		if mpi != "" && !program.AskForMPI(j.spec.MPILib, j.spec.Programs) {
			mpi = ""
		}
		return program.OpenOffer(j.spec.Preload, mpi, j.spec.Programs)
	}
	var err error
	if p := j.spec.Preload; j.end.cause == nil && !p.Binary && p.Files == "" && mpi == "" {
		j.offer, err = open() // at once: the time limit does not end the job here
		return err
	}
	j.offer, err = during(j, "reading what is to be preloaded", open)
	return err
}

// during runs work, which may be as slow as file systems, and returns its result. The job handles
// events meanwhile. during returns an error, too, if the job is about to end.
func during[T any](j *Job, doing string, work func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	results := make(chan result, 1)
	go func() { // until work is done or the process ends
		value, err := work()
		results <- result{value, err}
	}()
	for j.end.cause == nil {
		select {
		case r := <-results:
			return r.value, r.err
		case e := <-j.events:
			j.handle(e)
		case s := <-j.signals:
			j.signalled(s)
		case q := <-j.system.Questions:
			j.askedFor(q)
		case <-j.timer:
			j.timeUp(" while " + doing)
		}
	}
	var none T
	return none, errors.New("the job ends before its launch")
}
