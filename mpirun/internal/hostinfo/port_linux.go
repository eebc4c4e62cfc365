package hostinfo

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// HoldPort binds a socket to a port that is free on all of this host's IPv4 addresses, and never
// listens on it. The kernel gives the port to no other process, but rank 0 can listen there: both
// sockets allow their address to be reused.
func HoldPort() (fd, port int, err error) {
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, 0, err
	}
	if port, err = bindReusable(fd); err != nil {
		unix.Close(fd)
		return -1, 0, err
	}
	return fd, port, nil
}

func bindReusable(fd int) (int, error) {
	for _, option := range []int{unix.SO_REUSEADDR, unix.SO_REUSEPORT} {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, 1); err != nil {
			return 0, err
		}
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{}); err != nil {
		return 0, err
	}
	addr, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	in, ok := addr.(*unix.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("bound to %v, want an IPv4 address", addr)
	}
	return in.Port, nil
}
