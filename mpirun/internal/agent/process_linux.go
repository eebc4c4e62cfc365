package agent

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/boot/wire"
	"gompi/internal/env"
	"gompi/internal/world"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/loop"
	"gompi/mpirun/internal/pipes"
	"gompi/mpirun/internal/proc"
	"gompi/mpirun/internal/program"
)

// A process is one rank on this host.
type process struct {
	ctl.Rank
	index int // in agent.ranks
	pid   int // 0 before it is started
	pidfd int // -1 where the kernel has none
	ended bool

	endedAt int64 // on seg.Now's clock

	unaware bool // it ended before this host learned of a failure
	alone   bool // a job of one
	late    bool // a program came in its place after its end

	output *pipes.Output
	stdin  int    // -1 when closed
	input  []byte // not yet taken
	full   bool   // the pipe is full, and is watched

	boot    int // our end of its boot socket, -1 when closed
	in      wire.Frames
	out     []byte // not yet taken by the socket
	jammed  bool   // the socket is full, and is watched
	card    []byte
	hasCard bool
	cardAt  int64     // arrival of card, on seg.Now's clock
	asked   time.Time // deadline for its stacks; zero if not asked
	read    bool      // a debugger of this agent stops it for a moment

	watch    *proc.Watch // nil before the first look
	reported string      // obstacle to its running, as reported to the user

	// For replacements:
	original  int          // index of the rank whose place it took; of other ranks their own
	invite    *wire.Invite // nil for other ranks
	unbriefed bool         // it lacks the cards of all ranks, which come before any other news

	pmi client
}

// running returns the process, 0 before and after it runs.
func (p *process) running() int {
	if p.ended {
		return 0
	}
	return p.pid
}

// local returns the rank's number on its host.
func (p *process) local() world.LocalRank { return world.LocalRank(p.index) }

// Descriptor numbers that every rank inherits, beside the standard descriptors and the doorbells.
const (
	bootFD = 3
	segFD  = 4
	pmiFD  = 5
)

// ends are the far ends of a rank's pipes, which its process inherits.
type ends struct{ stdin, stdout, stderr, boot, pmi int }

func (e *ends) close() {
	for _, fd := range []int{e.stdin, e.stdout, e.stderr, e.boot, e.pmi} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// connect makes and watches the pipes and the socket of p, and puts the welcome into the socket
// for the rank to read.
func (a *agent) connect(p *process, e *ends) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("socketpair: %w", err)
	}
	p.boot, e.boot = pair[0], pair[1]
	if err := a.watchRank(p); err != nil {
		return err
	}
	a.send(p, wire.Append(nil, a.welcome(p)))
	if e.pmi, err = a.connectClient(p); err != nil {
		return err
	}
	if e.stdout, e.stderr, err = a.output.Pipes(p.output); err != nil {
		return err
	}
	if a.launch.Inherit && a.launch.Stdin == p.Rank.Rank {
		e.stdin, a.inherit = a.inherit, -1
		return nil
	}
	if a.launch.Stdin == p.Rank.Rank || a.launch.Stdin == ctl.StdinAll {
		pipe, err := loop.Pipe(1)
		if err != nil {
			return err
		}
		p.stdin, e.stdin = pipe[1], pipe[0]
		return nil
	}
	e.stdin, err = unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	return err
}

// spawn starts p's process, bound to its CPUs, with the timer slack of this host's ranks.
func (a *agent) spawn(p *process, prog *program.Program, vars []string) error {
	e := ends{-1, -1, -1, -1, -1}
	defer e.close()
	if err := a.connect(p, &e); err != nil {
		return err
	}
	if err := a.affinity.Bind(p.CPUs); err != nil {
		a.note("rank %d is not bound: %v", p.Rank.Rank, err)
	}
	attr := syscall.ProcAttr{
		Dir: prog.Dir,
		Env: vars,
		Files: []uintptr{uintptr(e.stdin), uintptr(e.stdout), uintptr(e.stderr), uintptr(e.boot),
			uintptr(a.segment.FD()), uintptr(e.pmi)},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, PidFD: &p.pidfd},
	}
	if a.group != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, a.group.FD()
	}
	cpus := a.affinity.Own()
	if q := a.hello.Quota; q > 0 {
		cpus = min(cpus, q)
	}
	defer proc.Slacken(len(a.launch.Ranks), cpus)()
	pid, err := syscall.ForkExec(prog.Path, prog.Argv, &attr)
	if err != nil && a.group != nil {
		attr.Sys.UseCgroupFD = false // perhaps because of the cgroup: the error does not tell
		pid, err = syscall.ForkExec(prog.Path, prog.Argv, &attr)
	}
	if err != nil {
		return prog.StartError(err)
	}
	p.pid = pid
	if p.pidfd < 0 {
		return nil
	}
	return a.loop.Watch(p.pidfd, unix.EPOLLIN, func(uint32) { a.reap(p) })
}

// welcome returns the message that gives p its rank and the layout of the job.
func (a *agent) welcome(p *process) *wire.Welcome {
	w := &wire.Welcome{
		Rank: world.Rank(p.Rank.Rank), Size: a.launch.Size, LocalRank: p.local(), LocalSize: a.places(),
		Node: a.launch.Node, Program: p.Rank.Program, JobID: a.launch.JobID, Secret: a.launch.Secret,
		Placement: a.layout.Placement, Hosts: a.layout.Hosts, Watch: a.launch.Stacks, Recover: a.launch.Recover,
		Spares: a.launch.Spares,
	}
	if p.invite != nil {
		w.Invited, w.Invite = true, *p.invite
	}
	return w
}

// places returns the most ranks of this host, including all replacements.
func (a *agent) places() int { return len(a.launch.Ranks) + a.launch.Spares }

// node returns the description of this host for its ranks.
func (a *agent) node() *program.Node {
	l, hosts := a.launch, a.layout.Hosts
	n := &program.Node{JobID: l.JobID, Hosts: hosts, Counts: make([]int, len(hosts)), Index: l.Node,
		MasterAddr: l.MasterAddr, MasterPort: l.MasterPort}
	for _, run := range a.layout.Placement {
		if run.Node < len(n.Counts) {
			n.Counts[run.Node] += run.Count
		}
	}
	for _, r := range l.Ranks {
		n.Ranks = append(n.Ranks, r.Rank)
	}
	return n
}

// descriptors returns the variables by which a rank finds the descriptors shared with the agent
// and the other ranks of this host.
func (a *agent) descriptors() []string {
	return []string{
		fmt.Sprintf("%s=%d", env.BootFD, bootFD), fmt.Sprintf("%s=%d", env.SegFD, segFD),
		fmt.Sprintf("%s=%d", env.PMIFD, pmiFD),
		fmt.Sprintf("%s=%d", env.BellFD, a.bells[0]), env.BootAddr + "=" + a.address,
		fmt.Sprintf("%s=%d", env.Spares, a.launch.Spares),
	}
}
