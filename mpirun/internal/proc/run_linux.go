package proc

import (
	"os/exec"
	"sync"
)

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
