// Package proc inspects and ends other processes of this host: the tree below this process, ended
// also after its parent, the launcher or the agent (tree, run, group, guard, sweep); the state and
// stacks of silent and crashed programs (doing, ready, frames, walk, crash, alone, watch); limits
// and bindings of new processes (thread, limits).
package proc

import (
	"syscall"
	"time"
)

const (
	// WalkFlag makes gompirun Walk: see Frames.
	WalkFlag = "--walk"
	// WatchdogFD is the agent's end of the pipe to its watchdog.
	WatchdogFD = 3
	// KillPeriod is the time between two checks of a killed process tree.
	KillPeriod = 2 * time.Millisecond
	// Hopeless is the time after which unkillable processes are given up.
	Hopeless = 5 * time.Second
)

// Sweep kills all descendants of this process, except the processes for which living is true and
// their descendants. It tries until Hopeless has passed.
func Sweep(living func(pid int) bool) {
	for deadline := time.Now().Add(Hopeless); time.Now().Before(deadline); time.Sleep(KillPeriod) {
		if n, err := SignalBelow(syscall.SIGKILL, living); n == 0 || err != nil {
			return
		}
	}
}
