package remote

import "syscall"

// session makes a process begin a session, and has it continued if it is stopped when this process
// dies: a stopped agent then ends its ranks. It holds from the fork on, so that an agent may be
// stopped at any time. To Linux the parent is the thread that has started the process.
func session() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGCONT}
}
