package proc

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// EndedChild returns a child that has ended and is not reaped yet, 0 if there is none, and
// whether there are any children.
func EndedChild() (pid int, children bool) {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || info.Signo != int32(unix.SIGCHLD) {
			return 0, err == nil
		}
		return int((*childInfo)(unsafe.Pointer(&info)).pid), true
	}
}

// A childInfo is the kernel's layout of a unix.Siginfo of SIGCHLD on 64-bit systems.
type childInfo struct {
	_   [4]int32
	pid int32
}

// HasEnded reports whether a child has ended and is not reaped yet.
func HasEnded(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo == int32(unix.SIGCHLD)
}
