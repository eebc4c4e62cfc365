// Package watchdog ends what is left when a launcher or an agent is gone.
package watchdog

import (
	"syscall"
	"time"

	"gompi/mpirun/internal/tree"
)

// Sweep kills everything below this process but for the living, and what is below those.
// It tries for 5 s at most.
func Sweep(living func(pid int) bool) {
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if n, err := tree.Signal(syscall.SIGKILL, living); n == 0 || err != nil {
			return
		}
	}
}
