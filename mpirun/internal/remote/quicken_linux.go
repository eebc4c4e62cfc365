package remote

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// quicken sets TCP_NODELAY on the connections of srun, a process of ours. srun does not set
// it, and passes orders on in pieces of 1 KiB: the second waits 40 ms until the first is
// acknowledged. Where the kernel does not let us reach its sockets, that wait stays.
//
// From start to finish, 8 ranks on two nodes, make launch-slurm with and without this in 40
// pairs (Slurm 22.05, 2 processors of an AMD EPYC, Zen 4): median 127 ms with it and 155 without,
// of which Init takes 18 and 53. 30 pairs beside other work: 218 and 252 ms, Init 24 and 55.
func quicken(pid int) {
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(pidfd)
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid)) // the pattern is good
	for _, path := range fds {
		number, err := strconv.Atoi(filepath.Base(path))
		if to, _ := os.Readlink(path); err != nil || !strings.HasPrefix(to, "socket:") {
			continue
		}
		if fd, err := unix.PidfdGetfd(pidfd, number, 0); err == nil {
			unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) // some are not TCP
			unix.Close(fd)
		}
	}
}
