package remote

import "syscall"

// session gives a process a session, and a SIGCONT at this process's death: a stopped agent then
// ends its ranks. Both take effect at the fork, so that an agent may be stopped at any time. To
// Linux the parent is the thread that has started the process.
func session() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGCONT}
}
