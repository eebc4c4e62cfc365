package agent

import (
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/loop"
	"gompi/mpirun/internal/proc"
)

// Processes whose parents have ended become children of the agent, so that none is left behind.
// They are reaped when they end: a program that starts many would else run into a limit of
// processes.

// watchChildren makes the loop wake up when a child ends.
func (a *agent) watchChildren() error {
	bell, err := a.loop.Bell(func() { a.unreaped = true })
	if err != nil {
		return fmt.Errorf("watch children: %w", err)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	go func() { // until the process ends
		for range ended {
			loop.Ring(bell)
		}
	}()
	return nil
}

// reapOrphans reaps the children that have ended and that no other goroutine waits for. It stops at
// one that another goroutine waits for, until that has been reaped: a rank's own event shows in
// which order ranks have ended, and what runs aside, as py-spy, is reaped there.
func (a *agent) reapOrphans() {
	for {
		pid, _ := proc.EndedChild()
		if pid == 0 {
			a.unreaped = false
			return
		}
		if a.rankOf(pid) != nil || proc.RunWaitsFor(pid) {
			return
		}
		unix.Wait4(pid, nil, 0, nil)
	}
}

// reapAny takes note of every child that has ended, ranks and orphans, and
// reports whether there are children left.
func (a *agent) reapAny() bool {
	for {
		pid, children := proc.EndedChild()
		if pid == 0 || proc.RunWaitsFor(pid) {
			return children
		}
		var ws unix.WaitStatus
		var used unix.Rusage
		unix.Wait4(pid, &ws, 0, &used)
		if p := a.rankOf(pid); p != nil {
			a.exited(p, ws, &used)
		}
	}
}

// rankOf returns the rank that a process is and that is not reaped yet, nil if it is none.
func (a *agent) rankOf(pid int) *process {
	for _, p := range a.ranks {
		if p.pid == pid && !p.ended {
			return p
		}
	}
	return nil
}
