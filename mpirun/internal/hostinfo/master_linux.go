package hostinfo

import (
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"gompi/internal/sockets"
)

// HoldPort binds a socket to a port that is free on all of this host's IPv4 addresses, and never
// listens on it. The kernel gives the port to no other process, but rank 0 can listen there: both
// sockets allow their address to be reused. A sandbox may forbid Internet sockets: ranks have none
// either, and miss no port.
func HoldPort() (fd, port int, err error) {
	if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err == nil {
		if port, err = bindReusable(fd); err == nil {
			return fd, port, nil
		}
		unix.Close(fd)
	}
	if err == unix.EPERM || err == unix.EACCES || err == unix.EAFNOSUPPORT {
		err = nil
	}
	return -1, 0, err
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

// InterfaceTo returns the interface by which this host reaches address, "" for loopback and for
// text that is no address.
func InterfaceTo(address string) string {
	to, err := netip.ParseAddr(address)
	if err != nil {
		return ""
	}
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, 9))) // sends nothing
	if err != nil {
		return ""
	}
	defer c.Close()
	own, _ := netip.ParseAddrPort(c.LocalAddr().String())
	return sockets.InterfaceOf(own.Addr())
}
