package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/seg"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/launchenv"
)

// Exit statuses that stand for a rank that could not be started, as shells use
// them.
const (
	cannotStart   = 125
	notExecutable = 126
	notFound      = 127
)

// A program is what some ranks run, looked up on this host.
type program struct {
	path string
	argv []string
	wdir string
	env  []string // of all its ranks
}

// start starts all ranks, or none: it tells the launcher which could not be
// started, and ends those that were.
func (a *agent) start(l *ctl.Launch) {
	if a.launch != nil || len(l.Ranks) == 0 || len(l.Programs) == 0 {
		a.note("ignored an order to start %d ranks", len(l.Ranks))
		return
	}
	a.launch, a.window, a.memory = l, l.Window, newMemoryGuard("/")
	a.settle()
	for i, r := range l.Ranks {
		a.ranks = append(a.ranks, &process{Rank: r, index: i, pidfd: -1, boot: -1, stdin: -1, in: rankFrames(), pmi: client{fd: -1},
			stdout: stream{rank: r.Rank, kind: ctl.Stdout, fd: -1}, stderr: stream{rank: r.Rank, kind: ctl.Stderr, fd: -1}})
		a.local[r.Rank] = i
	}
	a.begin(a.findWanted())
}

// begin starts the ranks, unless a program is missing yet, or cannot be had.
func (a *agent) begin(err error) {
	rank := a.launch.Ranks[0].Rank
	if err == nil {
		var missing bool
		if missing, err = a.fetch(); missing {
			return
		}
	}
	if err == nil {
		rank, err = a.startAll()
	}
	if err != nil {
		err = openFilesError(err, len(a.ranks))
		a.report(&ctl.Failed{Rank: rank, Code: statusOf(err), Text: err.Error()})
		a.killAll()
		return
	}
	a.reportStarted()
	if a.launch.Size > 1 {
		a.nextSingletons = time.Now().Add(singletonLooks[0])
	}
}

// startAll returns the rank that could not be started, and why.
func (a *agent) startAll() (int, error) {
	first := a.launch.Ranks[0].Rank
	if err := a.makeShared(); err != nil {
		return first, err
	}
	a.pen = newPen()
	gloo, node := a.glooInterface(), a.node()
	programs := make([]*program, len(a.launch.Programs))
	for _, p := range a.ranks {
		prog := programs[p.Program]
		if prog == nil {
			var err error
			if prog, err = a.lookUp(&a.launch.Programs[p.Program], a.preload.paths[p.Program]); err != nil {
				return p.Rank.Rank, err
			}
			programs[p.Program] = prog
		}
		vars := launchenv.Merge(a.threads(p), gloo, prog.env, gpuVariables(p), // defaults first
			node.Slurm(p.index, prog.env), node.Identity(p.index), a.descriptors())
		if err := a.spawn(p, prog, vars); err != nil {
			return p.Rank.Rank, startError(prog, err)
		}
		a.alive++
	}
	a.bind(nil)
	if a.launch.MasterPort != a.facts.Port && a.held >= 0 {
		unix.Close(a.held)
		a.held = -1
	}
	return 0, nil
}

// makeShared makes what the ranks of this host share.
func (a *agent) makeShared() error {
	ranks := make([]int, len(a.ranks))
	for i, p := range a.ranks {
		ranks[i] = p.Rank.Rank
	}
	if !slices.IsSorted(ranks) {
		return fmt.Errorf("ranks %v: want them in ascending order", ranks)
	}
	if err := unix.SchedGetaffinity(0, &a.affinity); err != nil {
		return fmt.Errorf("affinity: %w", err)
	}
	var err error
	if a.segment, err = seg.New(ranks); err != nil {
		return err
	}
	if a.bells, err = newBells(len(ranks)); err != nil {
		return fmt.Errorf("doorbells: %w", err)
	}
	if len(ranks) >= manyRanks {
		shareOpenFiles()
	}
	return a.listen()
}

// newBells makes n doorbells with numbers one after the other. They stay open on
// exec: to pass hundreds of them on to hundreds of ranks, nothing is to be done.
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

// openFilesError says what to do if err is that too many files are open. The limit is the
// hard one, to which Go has raised the other.
func openFilesError(err error, ranks int) error {
	var limit unix.Rlimit
	if !errors.Is(err, unix.EMFILE) || unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return err
	}
	n := openFiles(ranks)
	return fmt.Errorf("%w: the hard limit is %d (ulimit -Hn), and %d ranks on one host need up to %d: want %q in /etc/security/limits.conf and a new login, or as root \"ulimit -n %d\"",
		err, limit.Cur, ranks, n, "* hard nofile 65536", n)
}

// manyRanks is so many that their doorbells, which each of them has, take much of
// the limit of open files that is usual, 1024.
const manyRanks = 100

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
			m.CPUs = append(m.CPUs, boundTo(p.pid))
		}
	}
	a.report(m)
}

// lookUp finds a program on this host. path is where it has been put, if it has.
func (a *agent) lookUp(p *ctl.Program, path string) (*program, error) {
	if len(p.Argv) == 0 || p.Argv[0] == "" {
		return nil, errors.New("no program to run")
	}
	prog := &program{argv: p.Argv, wdir: p.Wdir, env: launchenv.Merge(a.vars, p.Env)}
	if p.Wdir != "" {
		if st, err := os.Stat(p.Wdir); err != nil || !st.IsDir() {
			return nil, fmt.Errorf("working directory %q: no such directory", p.Wdir)
		}
	} else {
		prog.wdir = a.dir
	}
	if prog.wdir != "" {
		prog.env = launchenv.Merge(prog.env, []string{"PWD=" + prog.wdir})
	}
	if prog.path = path; path != "" {
		return prog, nil
	}
	var err error
	dirs, _ := launchenv.Value(prog.env, "PATH")
	if prog.path, err = find(p.Argv[0], prog.wdir, dirs); err != nil {
		return nil, err
	}
	return prog, foreign(p, prog, a.launch.Size)
}

// find returns the path of the program called name, as execvp would find it
// from the directory wdir.
func find(name, wdir, path string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil // exec itself says what is wrong with it
	}
	var denied error
	for _, dir := range filepath.SplitList(path) {
		if dir == "" {
			dir = "."
		}
		candidate := dir + "/" + name
		at := candidate
		if !filepath.IsAbs(at) {
			at = filepath.Join(wdir, at)
		}
		if st, err := os.Stat(at); err != nil || st.IsDir() {
			continue
		}
		if unix.Access(at, unix.X_OK) == nil {
			return candidate, nil
		}
		denied = fmt.Errorf("cannot run %q: %s: %w", name, at, syscall.EACCES)
	}
	if denied != nil {
		return "", denied
	}
	hint := ""
	if st, err := os.Stat(filepath.Join(wdir, name)); err == nil && !st.IsDir() {
		hint = fmt.Sprintf("; there is one in the working directory: want ./%s", name)
	}
	return "", fmt.Errorf("cannot find %q in PATH%s: %w", name, hint, syscall.ENOENT)
}

// startError says why the kernel would not start prog.
func startError(prog *program, err error) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return err
	}
	if errno == syscall.ENOENT {
		at := prog.path
		if !filepath.IsAbs(at) {
			at = filepath.Join(prog.wdir, at)
		}
		if _, statErr := os.Stat(at); statErr == nil {
			return fmt.Errorf("cannot run %q: it is there, but not the interpreter or loader that it asks for: %w", prog.argv[0], err)
		}
	}
	return fmt.Errorf("cannot run %q: %w", prog.argv[0], err)
}

// statusOf returns the exit status that stands for err.
func statusOf(err error) int {
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENOTDIR):
		return notFound
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.EPERM):
		return notExecutable
	}
	return cannotStart
}
