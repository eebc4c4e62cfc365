package proc

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"gompi/internal/machine"
)

// leastThreads is the number of threads of a launcher and an agent after their start, and a few
// more.
const leastThreads = 12

// leastFiles is the number of open files of a launcher without an agent, and a few more. With
// fewer, Go itself may die.
const leastFiles = 12

// mostCounted is a limit of processes that no launcher reaches. Stopping there saves counting all
// of the machine's.
const mostCounted = 4096

// CheckLimits returns an error if this process may not open a few files, start a few threads and
// processes, or see its children. Go's own message, when opening its first file or starting a
// thread fails, is the stacks of all goroutines.
func CheckLimits() error {
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil && files.Cur < leastFiles {
		return fmt.Errorf("there may be %d open files by ulimit -n: want %d for gompirun, and those of the ranks",
			files.Cur, leastFiles)
	}
	if _, err := os.Stat("/proc/self/exe"); err != nil {
		return fmt.Errorf("%w: want /proc, by which processes are started and watched (mount -t proc proc /proc)", err)
	}
	if l := processLimit("/"); l.left < leastThreads {
		return fmt.Errorf("%v: want %d more for gompirun, and those of the ranks", l, leastThreads)
	}
	return nil
}

// NameLimit adds to the error of a system call the limit behind it, as far as known: the kernel has
// one error number for all limits.
func NameLimit(err error) error {
	var files, space unix.Rlimit
	switch {
	case errors.Is(err, unix.ENOMEM) && unix.Getrlimit(unix.RLIMIT_AS, &space) == nil && space.Cur < unix.RLIM_INFINITY:
		return fmt.Errorf("%w: the address space of a process may be %d MiB (ulimit -v)", err, space.Cur>>20)
	case errors.Is(err, unix.EAGAIN):
		if l := processLimit("/"); l.name != "" {
			return fmt.Errorf("%w: %v", err, l)
		}
	case errors.Is(err, unix.EMFILE) && unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil:
		return fmt.Errorf("%w: the limit is %d (ulimit -n)", err, files.Cur)
	}
	return err
}

// A limit bounds the number of threads and processes.
type limit struct {
	name     string // "" for none
	of, left int64
}

func (l limit) String() string {
	return fmt.Sprintf("there may be %d threads and processes by %s, and there are %d", l.of, l.name, l.of-l.left)
}

// processLimit returns the limit of this process that leaves least. root is "/", except in tests.
func processLimit(root string) limit {
	l := limit{left: mostCounted}
	for g := range machine.ControlGroups(root, "pids") {
		of, ok := g.Number("pids.max", "pids.max")
		taken, ok2 := g.Number("pids.current", "pids.current")
		if ok && ok2 && of-taken < l.left {
			l = limit{"pids.max of control group " + g.Name, of, of - taken}
		}
	}
	var user unix.Rlimit
	// root has no limit
	if os.Getuid() != 0 && unix.Getrlimit(unix.RLIMIT_NPROC, &user) == nil && user.Cur < mostCounted {
		if of := int64(user.Cur); of-threadsOf(os.Getuid()) < l.left {
			l = limit{"this user's limit (ulimit -u)", of, of - threadsOf(os.Getuid())}
		}
	}
	return l
}

// threadsOf returns the number of a user's threads, as far as this process may see them.
func threadsOf(uid int) (n int64) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != uid {
			continue
		}
		status, _ := os.ReadFile("/proc/" + e.Name() + "/status")
		_, rest, _ := strings.Cut(string(status), "\nThreads:\t")
		count, _, _ := strings.Cut(rest, "\n")
		here, _ := strconv.ParseInt(count, 10, 64) // 0 if it has ended
		n += here
	}
	return n
}

// agentFiles is the number of files that an agent has open before it knows its ranks, and a few
// more.
const agentFiles = 24

// CheckAgentLimits returns an error if the limits of this process are too low for an agent on
// another host than the launcher's, which has checked its own.
func CheckAgentLimits() error {
	if err := CheckAgentFiles(); err != nil {
		return err
	}
	return CheckLimits()
}

// CheckAgentFiles returns an error if this process may have fewer open files than an agent needs.
func CheckAgentFiles() error {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur >= agentFiles {
		return nil
	}
	return NameLimitOfRanks(unix.EMFILE, 1)
}

// FirstBell is the least descriptor number of a doorbell: above the other inherited descriptors
// of a rank and its first files.
const FirstBell = 64

// openFiles is the number of files that an agent of n ranks may have open, and a few more: for
// each a doorbell, two sockets, three pipes and a pidfd.
func openFiles(n int) int { return max(FirstBell+n, 7*n) + 32 }

// NameLimitOfRanks is NameLimit for an agent of that many ranks. The soft limit of open files,
// which Go has raised, equals the hard limit.
func NameLimitOfRanks(err error, ranks int) error {
	var limit unix.Rlimit
	if !errors.Is(err, unix.EMFILE) || unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return NameLimit(err)
	}
	n := openFiles(ranks)
	return fmt.Errorf("%w: the hard limit is %d (ulimit -Hn), and np=%d on one host needs up to %d: "+
		"want %q in /etc/security/limits.conf and a new login, or as root \"ulimit -n %d\"",
		err, limit.Cur, ranks, n, "* hard nofile 65536", n)
}

// manyRanks is the number of ranks from which on the doorbells, which every rank inherits, take
// much of the usual limit of 1024 open files.
const manyRanks = 100

// RaiseLimits raises the limits of this process, and of its children, as far as that many ranks may
// need. RDMA locks the memory that it registers. Go has raised the limit of open files, but only
// for its own process. A rank reports hard limits that are too low itself.
func RaiseLimits(ranks int) {
	var locked unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &locked) == nil {
		locked.Cur = locked.Max
		_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &locked)
	}
	var files syscall.Rlimit
	if ranks >= manyRanks && syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil {
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &files)
	}
}
