package proc

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Adopt makes orphaned descendants children of this process instead of init's,
// so that none can leave the tree.
func Adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become reaper of orphans: %w", err)
	}
	return nil
}

// Reap reaps ended children for which nothing in this process waits: orphans would stay as
// zombies in a container whose first process does not reap.
func Reap() {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if pid <= 0 && err != unix.EINTR {
			return
		}
	}
}

// AwaitGroup reaps the children in a process group until it is empty, at most for limit.
func AwaitGroup(group int, limit time.Duration) {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(limit / 200) {
		if _, err := unix.Wait4(-group, nil, unix.WNOHANG, nil); err == unix.ECHILD {
			return
		}
	}
}

// Children returns the children of a process's first thread, if the kernel reports them. For a
// process that has just begun, and for adopted orphans, these are all children.
func Children(pid int) []int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil
	}
	var pids []int
	for field := range bytes.FieldsSeq(data) {
		if pid, err := strconv.Atoi(string(field)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// A Process is a descendant of this process.
type Process struct {
	PID    int
	Parent int
	Group  int  // its process group
	Zombie bool // it has ended, and is not reaped
}

// Below returns the descendants of this process, except the processes for which spare is true and
// their descendants; spare may be nil. Parents come before their children. Below looks at every
// process of the machine.
func Below(spare func(pid int) bool) ([]Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	children := map[int][]Process{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := find(pid, dirOf(pid)); ok && (spare == nil || !spare(pid)) {
			children[p.Parent] = append(children[p.Parent], p)
		}
	}
	found := children[os.Getpid()]
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].PID]...)
	}
	return found, nil
}

// find returns the kernel's description of a process, whose folder in /proc is dir, false after
// its end.
func find(pid int, dir string) (Process, bool) {
	f := statOf(dir)
	if len(f) < 3 {
		return Process{}, false
	}
	parent, err := strconv.Atoi(f[1])
	group, err2 := strconv.Atoi(f[2])
	return Process{pid, parent, group, f[0] == "Z" || f[0] == "X"}, err == nil && err2 == nil
}

// Ignores reports whether a process ignores a signal.
func Ignores(pid int, sig syscall.Signal) bool {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, mask, _ := bytes.Cut(status, []byte("\nSigIgn:\t"))
	mask, _, _ = bytes.Cut(mask, []byte("\n"))
	ignored, err := strconv.ParseUint(string(mask), 16, 64)
	return err == nil && ignored&(1<<(sig-1)) != 0
}

// SignalBelow sends sig to every running descendant and returns their number. A process that
// forks at that moment may hide its child: to end a tree, call SignalBelow with KILL until it
// returns 0.
func SignalBelow(sig syscall.Signal, spare func(pid int) bool) (int, error) {
	below, err := Below(spare)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, p := range below {
		if !p.Zombie && unix.Kill(p.PID, sig) == nil {
			n++
		}
	}
	return n, nil
}

// EndedChild returns a child that has ended and is not reaped yet, 0 if there is none, and
// whether there are any children.
func EndedChild() (pid int, children bool) {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || info.Signo != int32(unix.SIGCHLD) {
			return 0, err == nil
		}
		return int((*childInfo)(unsafe.Pointer(&info)).pid), true
	}
}

// A childInfo is the kernel's layout of a unix.Siginfo of SIGCHLD on 64-bit systems.
type childInfo struct {
	_   [4]int32
	pid int32
}

// HasEnded reports whether a child has ended and is not reaped yet.
func HasEnded(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo == int32(unix.SIGCHLD)
}

// runningCommands are the processes that Run waits for. The lock is held during a start.
var runningCommands struct {
	sync.Mutex
	pids map[int]bool
}

// Run runs cmd like cmd.Run, in a process that reaps orphans. RunWaitsFor tells the reaper to
// spare the process.
func Run(cmd *exec.Cmd) error {
	if err := startKnown(cmd); err != nil {
		return err
	}
	err := cmd.Wait()
	runningCommands.Lock()
	delete(runningCommands.pids, cmd.Process.Pid)
	runningCommands.Unlock()
	return err
}

func startKnown(cmd *exec.Cmd) error {
	runningCommands.Lock()
	defer runningCommands.Unlock()
	err := cmd.Start()
	if err == nil {
		if runningCommands.pids == nil {
			runningCommands.pids = map[int]bool{}
		}
		runningCommands.pids[cmd.Process.Pid] = true
	}
	return err
}

// RunWaitsFor reports whether Run waits for a child, or may, because Run is just starting a
// process.
func RunWaitsFor(pid int) bool {
	if !runningCommands.TryLock() {
		return true
	}
	defer runningCommands.Unlock()
	return runningCommands.pids[pid]
}
