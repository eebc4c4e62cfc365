// Package watchdog ends what is left when a launcher or an agent is gone. Launcher and agent watch
// each other, and the one that survives kills what the other has started. On hosts where there is
// no launcher a watchdog watches the agent.
package watchdog

import (
	"syscall"
	"time"

	"gompi/mpirun/internal/tree"
)

const (
	// FD is the agent's end of the pipe to its watchdog.
	FD = 3
	// KillPeriod is how often a killed process tree is checked.
	KillPeriod = 2 * time.Millisecond
	// Hopeless is when processes that do not die are given up.
	Hopeless = 5 * time.Second
)

// Sweep kills all descendants of this process, except those for which living is true and their
// descendants. It tries until Hopeless has passed.
func Sweep(living func(pid int) bool) {
	for deadline := time.Now().Add(Hopeless); time.Now().Before(deadline); time.Sleep(KillPeriod) {
		if n, err := tree.Signal(syscall.SIGKILL, living); n == 0 || err != nil {
			return
		}
	}
}
