package mpirun

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// denyMain runs a program in which system calls of some numbers fail, or only calls with some
// first argument:
//
//	deny ERRNO CALL[:ARGUMENT][,CALL...] PROGRAM...
func denyMain() {
	runtime.LockOSThread()
	errno, err := strconv.Atoi(os.Args[1])
	const number, ret, allow, deny = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_RET | unix.BPF_K,
		0x7fff0000, 0x50000
	filter := []unix.SockFilter{{Code: number, K: 0}}
	for call := range strings.SplitSeq(os.Args[2], ",") {
		call, arg, some := strings.Cut(call, ":")
		n, failed := strconv.Atoi(call)
		value, failed2 := strconv.Atoi("0" + arg)
		err = errors.Join(err, failed, failed2)
		const equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		fails := unix.SockFilter{Code: ret, K: deny | uint32(errno)}
		if some {
			filter = append(filter, unix.SockFilter{Code: equal, Jf: 3, K: uint32(n)},
				unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: firstArgument},
				unix.SockFilter{Code: equal, Jf: 1, K: uint32(value)}, fails, unix.SockFilter{Code: number, K: 0})
		} else {
			filter = append(filter, unix.SockFilter{Code: equal, Jf: 1, K: uint32(n)}, fails)
		}
	}
	filter = append(filter, unix.SockFilter{Code: ret, K: allow})
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err == nil {
		err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	}
	if err == nil {
		err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0)
	}
	path := ""
	if err == nil {
		path, err = exec.LookPath(os.Args[3])
	}
	if err == nil {
		err = syscall.Exec(path, os.Args[3:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, "deny:", err)
	os.Exit(9)
}

// firstArgument is where a filter of system calls finds the lower half of it.
const firstArgument = 16

// without makes a command run without sockets of some families.
func without(families ...int) []string {
	var calls []string
	for _, f := range families {
		calls = append(calls, fmt.Sprintf("%d:%d", unix.SYS_SOCKET, f))
	}
	return []string{"deny", fmt.Sprint(int(unix.EPERM)), strings.Join(calls, ",")}
}

// inASandbox makes a command run without some system calls.
func inASandbox(errno syscall.Errno, calls ...uintptr) []string {
	var numbers []string
	for _, n := range calls {
		numbers = append(numbers, fmt.Sprint(n))
	}
	return []string{"deny", fmt.Sprint(int(errno)), strings.Join(numbers, ",")}
}

// Where a sandbox, or a limit, leaves less than gompirun would have, jobs run with less.
func TestJobsRunWithLess(t *testing.T) {
	t.Parallel()
	const over = "no shared memory: ranks of this host use TCP: "
	limited := func(flags string) []string { return []string{"sh", "-c", "ulimit " + flags + ` 100; exec "$@"`, "sh"} }
	for _, tt := range []struct {
		name    string
		command []string
		output  string // "" for nothing
	}{
		{"nothing is missing", nil, ""},
		{"no memfd_create", inASandbox(unix.EPERM, unix.SYS_MEMFD_CREATE), ""},
		{"an old kernel", inASandbox(unix.ENOSYS, unix.SYS_MEMFD_CREATE), ""},
		{"no fallocate", inASandbox(unix.EOPNOTSUPP, unix.SYS_FALLOCATE), over + "fallocate: operation not supported"},
		{"no memory at all", inASandbox(unix.EPERM, unix.SYS_MEMFD_CREATE, unix.SYS_FALLOCATE),
			over + "fallocate: operation not permitted"},
		{"no sched_getaffinity", inASandbox(unix.EPERM, unix.SYS_SCHED_GETAFFINITY), ""},
		{"no Unix sockets", without(unix.AF_UNIX), ""},
		{"no IPv4", without(unix.AF_INET), ""},
		{"no Internet", without(unix.AF_INET, unix.AF_INET6), ""},
		{"no sockets", inASandbox(unix.EPERM, unix.SYS_SOCKET), ""},
		{"a limit of files", limited("-f"), over + "file too large: files of this process may have "},
		{"a limit that may be raised", limited("-S -f"), ""},
	} {
		line := append(tt.command, "gompirun", "-np", "2", "-oversubscribe", "world")
		status, out, errs := runCommand(t, line[0], line[1:]...)
		if tt.name == "a limit of files" && errs == "" && status == 0 {
			continue // a user who may raise any limit
		}
		if status != 0 || (tt.output == "") != (errs == "") || !strings.Contains(errs, tt.output) ||
			strings.Count(out, "of 2") != 2 {
			t.Errorf("%s: status %d, %q, %q; want two ranks, and %q", tt.name, status, out, errs, tt.output)
		}
	}
}

func TestLimitsThatLeaveNothingAreNamed(t *testing.T) {
	for limit, want := range map[string]string{
		"ulimit -f 1":  "want ulimit -f unlimited",
		"ulimit -n 6":  "there may be 6 open files by ulimit -n: want ",
		"ulimit -n 12": "too many open files: the limit is 12 (ulimit -n)",
	} {
		status, _, errs := runCommand(t, "sh", "-c", limit+"; exec gompirun -np 2 true")
		if !strings.Contains(errs, want) || strings.Contains(errs, "goroutine") {
			t.Errorf("%s: status %d: %q lacks %q", limit, status, errs, want)
		}
	}
}

func TestWithoutProcTheReasonIsReported(t *testing.T) {
	for _, line := range []string{"gompirun -np 1 true", "gompirun doctor"} {
		status, out, errs := runCommand(t, "unshare", "-m", "sh", "-c", "umount -l /proc || exit 77; exec "+line)
		switch {
		case status == 77 || status == 1:
			t.Skipf("no mount namespace to have here: %s%s", out, errs)
		case status != 125 || !strings.Contains(errs, "want /proc, by which processes are started and watched"):
			t.Errorf("%s: status %d, %q; want 125 and that /proc is wanted", line, status, errs)
		}
	}
}
