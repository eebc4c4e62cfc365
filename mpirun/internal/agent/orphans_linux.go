package agent

import (
	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/proc"
)

// Processes whose parents have ended become children of the agent, so that none escapes. The
// agent reaps them, because a program that starts many would otherwise reach a limit of
// processes.

// reapOrphans reaps ended children for which no other goroutine waits. It stops at a child that
// another goroutine reaps: a rank's own event keeps the order of the ranks' ends, and background
// programs, such as py-spy, are reaped where they were started.
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

// reapAny reaps all ended children, ranks and orphans, and reports whether children are left.
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

// rankOf returns the unreaped rank of a process, nil if there is none.
func (a *agent) rankOf(pid int) *process {
	for _, p := range a.ranks {
		if p.pid == pid && !p.ended {
			return p
		}
	}
	return nil
}
