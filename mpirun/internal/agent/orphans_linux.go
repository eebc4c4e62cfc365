package agent

import (
	"fmt"
	"os"
	"os/signal"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Processes whose parents have ended become children of the agent, so that none is left behind.
// They are reaped when they end: a program that starts many would else run into a limit of
// processes.

// watchChildren makes the loop wake up when a child ends.
func (a *agent) watchChildren() error {
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err == nil {
		err = a.watch(bell, childEnded, bell, unix.EPOLLIN)
	}
	if err != nil {
		return fmt.Errorf("watch children: %w", err)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	go func() { // until the process ends
		for range ended {
			unix.Write(bell, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // fails only if it has been rung often
		}
	}()
	return nil
}

// childrenEnded takes note that children have ended, of which bell tells.
func (a *agent) childrenEnded(bell int) {
	unix.Read(bell, a.buf[:8])
	a.unreaped = true
}

// reapOrphans reaps the children that have ended and are no ranks. At a rank it stops until that
// has been reaped: its own event says in which order ranks have ended. It does nothing while
// something runs aside, which may have started a child, as gompi-topo, and wait for it.
func (a *agent) reapOrphans() {
	if a.aside.running > 0 {
		return
	}
	for {
		pid := endedChild()
		if pid == 0 {
			a.unreaped = false
			return
		}
		for _, p := range a.ranks {
			if p.pid == pid && !p.ended {
				return
			}
		}
		unix.Wait4(pid, nil, 0, nil)
	}
}

// endedChild returns a child that has ended and is not reaped yet, 0 if there is none.
func endedChild() int {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || info.Signo != int32(unix.SIGCHLD) {
			return 0
		}
		return int((*childInfo)(unsafe.Pointer(&info)).pid)
	}
}

// A childInfo is how the kernel lays out a unix.Siginfo of SIGCHLD on 64-bit systems.
type childInfo struct {
	_   [4]int32
	pid int32
}
