// Package watchdog ends what is left when a launcher or an agent is gone. Launcher and agent
// watch each other, and whichever survives kills what the other has started. On hosts where
// there is no launcher a warden watches the agent.
package watchdog

import (
	"syscall"
	"time"

	"gompi/mpirun/internal/tree"
)

const (
	// KillPeriod is how often it is looked whether a killed tree of processes is gone.
	KillPeriod = 2 * time.Millisecond
	// Hopeless is when processes that do not die are given up.
	Hopeless = 5 * time.Second
)

// Sweep kills everything below this process but for the living, and what is below those.
// It tries for as long as there is hope.
func Sweep(living func(pid int) bool) {
	for deadline := time.Now().Add(Hopeless); time.Now().Before(deadline); time.Sleep(KillPeriod) {
		if n, err := tree.Signal(syscall.SIGKILL, living); n == 0 || err != nil {
			return
		}
	}
}
