// Package proc is about processes of this host that are not this one.
//
//	tree, run    the processes below this one, found and signalled also when a parent in between
//	             is gone
//	group        a control group around the ranks, whose processes the kernel kills at once
//	guard, sweep what ends them when a launcher or an agent is gone. Launcher and agent watch each
//	             other, and the one that survives kills what the other has started; on hosts
//	             where there is no launcher a watchdog (Guard) watches the agent
//	doing, ready what a process does that reports nothing itself: what the kernel knows of it, and
//	             of a Python program py-spy. The process does not notice
//	frames, walk where a program in C is: by gdb, or by the tables for unwinding
//	alone        whether it is an MPI program that does not know of the job
//	watch        whether it is stopped, or gets no processor
package proc

import (
	"syscall"
	"time"
)

const (
	// WalkFlag has gompirun Walk: see Frames.
	WalkFlag = "--walk"
	// WatchdogFD is the agent's end of the pipe to its watchdog.
	WatchdogFD = 3
	// KillPeriod is how often a killed process tree is checked.
	KillPeriod = 2 * time.Millisecond
	// Hopeless is when processes that do not die are given up.
	Hopeless = 5 * time.Second
)

// Sweep kills all descendants of this process, except those for which living is true and their
// descendants. It tries until Hopeless has passed.
func Sweep(living func(pid int) bool) {
	for deadline := time.Now().Add(Hopeless); time.Now().Before(deadline); time.Sleep(KillPeriod) {
		if n, err := SignalBelow(syscall.SIGKILL, living); n == 0 || err != nil {
			return
		}
	}
}
