// Package proc inspects and ends other processes of this host.
//
//	tree, run    the processes below this one, found and signalled even if a parent in between
//	             has ended
//	group        a control group around the ranks, whose processes the kernel kills at once
//	guard, sweep the end of processes after a launcher or an agent is gone. Launcher and agent
//	             watch each other, and the survivor kills the other's children; on hosts without
//	             a launcher a watchdog (Guard) watches the agent
//	doing, ready the activity of a silent process: the kernel's knowledge of it and, for a Python
//	             program, py-spy's. The process does not notice
//	frames, walk stacks of a program in C: by gdb, or by the tables for unwinding
//	crash        the stack of a program in C that has crashed, out of the record that it leaves
//	alone        recognizes an MPI program that does not know of the job
//	watch        recognizes a process that is stopped, or lacks a processor
//	thread       the binding and the timer slack that a process inherits from this thread: slack
//	             saves processor time where many ranks share a processor
//	limits       names the limit of the system that keeps a process from starting others
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
