package agent

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/boot"
	"gompi/internal/cgroup"
	"gompi/internal/env"
	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/hostinfo"
	"gompi/mpirun/internal/killgroup"
	"gompi/mpirun/internal/launchenv"
	"gompi/mpirun/internal/limits"
	"gompi/mpirun/internal/pmiserver"
	"gompi/mpirun/internal/preload"
	"gompi/mpirun/internal/program"
	"gompi/mpirun/internal/watchdog"
)

// start starts all ranks, or none: it tells the launcher which could not be
// started, and ends those that were.
func (a *agent) start(l *ctl.Launch) {
	if a.launch != nil || len(l.Ranks) == 0 || len(l.Programs) == 0 {
		a.note("ignored an order to start %d ranks", len(l.Ranks))
		return
	}
	a.launch, a.window, a.memory = l, l.Window, cgroup.WatchKills("/")
	if l.Size == 1 {
		watchdog.NameProcess(boot.AgentOfOne)
	}
	a.nodeEnv, a.gloo = a.node(), a.glooInterface()
	a.pmi.Callbacks, a.pmi.JobID, a.pmi.Size, a.pmi.Placement = a, l.JobID, l.Size, l.Placement
	for i, r := range l.Ranks {
		a.add(r)
		a.pmi.Clients = append(a.pmi.Clients, a.ranks[i].pmi.Client)
	}
	a.prepare(func() (*ctl.Want, error) {
		a.setEnvironment()
		a.preparation.intake.Find(l, a.preparation.dir)
		return nil, nil
	})
}

// add adds a rank that is not started yet.
func (a *agent) add(r ctl.Rank) *process {
	p := &process{Rank: r, index: len(a.ranks), pidfd: -1, boot: -1, stdin: -1, in: rankFrames(), pmi: client{Client: &pmiserver.Client{Rank: r.Rank, Program: r.Program}, fd: -1},
		stdout: stream{rank: r.Rank, kind: ctl.Stdout, fd: -1}, stderr: stream{rank: r.Rank, kind: ctl.Stderr, fd: -1}}
	p.original = p.index
	a.ranks, a.local[r.Rank] = append(a.ranks, p), p.index
	return p
}

// begin starts the ranks. err, if not nil, is why a rank cannot be started.
func (a *agent) begin(rank int, err error) {
	if err == nil {
		rank, err = a.startAll()
	}
	if err != nil {
		err = limitError(err, len(a.ranks))
		a.report(&ctl.Failed{Rank: rank, Code: program.Status(err), Text: err.Error()})
		a.killAll()
		return
	}
	a.reportStarted()
	go preload.KeepUsed(a.preparation.files()) // until the process ends
	if a.launch.Size > 1 {
		a.started = time.Now()
		a.nextAlone = a.started.Add(aloneLook)
	}
}

// startAll returns the rank that could not be started, and why.
func (a *agent) startAll() (int, error) {
	first := a.launch.Ranks[0].Rank
	if err := a.makeShared(); err != nil {
		return first, err
	}
	if !a.launch.KeepChildren { // a group cannot be removed while processes in it live on
		a.group = killgroup.New()
	}
	for _, p := range a.ranks {
		prog := a.preparation.programs[p.Program]
		if err := a.spawn(p, prog, a.variables(p, prog)); err != nil {
			return p.Rank.Rank, err
		}
		a.alive++
	}
	a.bind(nil)
	if a.launch.MasterPort != a.hello.Port && a.held >= 0 {
		unix.Close(a.held)
		a.held = -1
	}
	return 0, nil
}

// variables returns the environment of a rank: defaults first. One that replaces another has that
// one's, but for its place on this host.
func (a *agent) variables(p *process, prog *program.Program) []string {
	node := a.nodeEnv
	place := []string{fmt.Sprintf("%s=%d", env.LocalRank, p.index)}
	if a.launch.Virtual {
		place = append(place, env.TorchLocalRank+"=0")
	}
	return launchenv.Merge(launchenv.Threads(len(p.CPUs), a.launch.Cores, a.hello.Quota, len(a.launch.Ranks)), a.gloo, []string{env.TorchErrorFile + "=" + a.errorFile(p)}, prog.Env, launchenv.GPUs(p.GPUs),
		node.Slurm(p.original, prog.Env), node.Identity(p.original), a.descriptors(), place)
}

// makeShared makes what the ranks of this host share.
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
	if unix.SchedGetaffinity(0, &a.affinity) != nil { // in a sandbox: what is not known, is all
		for i := range a.affinity {
			a.affinity[i] = ^a.affinity[i]
		}
	}
	var err error
	if a.segment, err = seg.New(ranks); err != nil {
		return err
	}
	a.segment.SetJobSize(a.launch.Size)
	if err := a.segment.Without(); err != nil && len(ranks) > 1 {
		a.note("no shared memory: ranks of this host use TCP: %v", err)
	}
	if a.bells, err = newBells(len(ranks)); err != nil {
		return fmt.Errorf("doorbells: %w", err)
	}
	if len(ranks) >= manyRanks {
		shareOpenFiles()
	}
	raiseLockedMemory()
	return a.listen()
}

// newBells makes n doorbells with consecutive descriptor numbers. They stay open on exec, so that
// all ranks inherit all of them at no cost.
func newBells(n int) (bells []int, err error) {
	for next := firstBell; len(bells) < n; {
		bell, err := newBell(next)
		if err != nil {
			return nil, err
		}
		if bell != next { // that number is taken: the row begins anew behind it
			closeAll(bells)
			bells = nil
		}
		bells, next = append(bells, bell), bell+1
	}
	return bells, nil
}

// firstBell is above the numbers of what a rank inherits, or opens at once.
const firstBell = 64

// newBell makes a doorbell with the lowest number that is free from least on.
func newBell(least int) (int, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	if fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD, least); err == unix.EINVAL {
		err = unix.EMFILE // there are no such numbers
	}
	return fd, err
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// openFiles is how many files an agent of n ranks may have open, and a few more: for each a
// doorbell, two sockets, three pipes and a pidfd. Doorbells need numbers from firstBell on.
func openFiles(n int) int { return max(firstBell+n, 7*n) + 32 }

// CheckLimits returns an error if the limits of this process are too low for an agent that serves
// another host than the launcher's, which has looked at its own.
func CheckLimits() error {
	if err := checkFiles(); err != nil {
		return err
	}
	return limits.Check()
}

// leastFiles is how many an agent has open before it knows its ranks, and a few more.
const leastFiles = 24

// checkFiles returns an error if this process may have fewer open.
func checkFiles() error {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur >= leastFiles {
		return nil
	}
	return limitError(unix.EMFILE, 1)
}

// limitError adds advice to err if a limit is why it came. The soft limit of open files, which Go
// has raised, equals the hard one.
func limitError(err error, ranks int) error {
	var limit unix.Rlimit
	if !errors.Is(err, unix.EMFILE) || unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return limits.Explain(err)
	}
	n := openFiles(ranks)
	return fmt.Errorf("%w: the hard limit is %d (ulimit -Hn), and np=%d on one host needs up to %d: want %q in /etc/security/limits.conf and a new login, or as root \"ulimit -n %d\"",
		err, limit.Cur, ranks, n, "* hard nofile 65536", n)
}

// manyRanks is the number of ranks from which on the doorbells, all of which every rank inherits,
// take much of the usual limit of 1024 open files.
const manyRanks = 100

// raiseLockedMemory lets this process, and what it starts, lock as much memory as the hard limit
// allows: RDMA locks what it registers.
func raiseLockedMemory() {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) == nil {
		limit.Cur = limit.Max
		_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit) // a rank for which it is too little says so
	}
}

// shareOpenFiles lets what this process starts open as many files as itself,
// which is what the hard limit allows: Go raises the other one, but only for its
// own process.
func shareOpenFiles() {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) // ranks that need more say so themselves
	}
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

// lookUpAll finds the programs of this host's ranks. It returns the rank whose program is not
// found, and why.
func (a *agent) lookUpAll() (int, error) {
	programs := make([]*program.Program, len(a.launch.Programs))
	for _, r := range a.launch.Ranks {
		if programs[r.Program] != nil {
			continue
		}
		var err error
		if programs[r.Program], err = a.lookUp(&a.launch.Programs[r.Program], a.preparation.intake.Path(r.Program)); err != nil {
			return r.Rank, err
		}
	}
	a.preparation.programs = programs
	return 0, nil
}

// lookUp finds a program on this host. path is where it has been put, if it has.
func (a *agent) lookUp(p *ctl.Program, path string) (*program.Program, error) {
	if len(p.Argv) == 0 || p.Argv[0] == "" {
		return nil, errors.New("no program to run")
	}
	prog := &program.Program{Path: path, Argv: p.Argv, Dir: p.Wdir, Env: launchenv.Merge(a.preparation.vars, p.Env)}
	if p.Wdir != "" {
		if st, err := os.Stat(p.Wdir); err != nil || !st.IsDir() {
			return nil, fmt.Errorf("working directory %q: no such directory", p.Wdir)
		}
	} else {
		prog.Dir = a.preparation.dir
	}
	if prog.Dir != "" {
		prog.Env = launchenv.Merge(prog.Env, []string{"PWD=" + prog.Dir})
	}
	if path != "" {
		return prog, nil
	}
	var err error
	dirs, _ := launchenv.Value(prog.Env, "PATH")
	if prog.Path, err = program.Find(p.Argv[0], prog.Dir, dirs); err != nil {
		return nil, err
	}
	prog.Touch()
	return prog, prog.CheckRanksMeet(a.launch.Size)
}
