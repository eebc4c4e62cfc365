package proc

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// agentFiles is the number of files that an agent has open before it knows its ranks, and a few
// more.
const agentFiles = 24

// CheckAgentLimits returns an error if the limits of this process are too low for an agent on another
// host than the launcher's, which has checked its own.
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
