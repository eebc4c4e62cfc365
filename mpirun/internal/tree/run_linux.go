package tree

import (
	"os/exec"
	"sync"
)

// running are the processes that Run waits for. The lock is held while one starts.
var running struct {
	sync.Mutex
	pids map[int]bool
}

// Run runs cmd as its own Run does, in a process that reaps orphans: RunWaitsFor marks this one as
// none.
func Run(cmd *exec.Cmd) error {
	if err := startKnown(cmd); err != nil {
		return err
	}
	err := cmd.Wait()
	running.Lock()
	delete(running.pids, cmd.Process.Pid)
	running.Unlock()
	return err
}

func startKnown(cmd *exec.Cmd) error {
	running.Lock()
	defer running.Unlock()
	err := cmd.Start()
	if err == nil {
		if running.pids == nil {
			running.pids = map[int]bool{}
		}
		running.pids[cmd.Process.Pid] = true
	}
	return err
}

// RunWaitsFor reports whether Run waits for a child, or may: one is just being started.
func RunWaitsFor(pid int) bool {
	if !running.TryLock() {
		return true
	}
	defer running.Unlock()
	return running.pids[pid]
}
