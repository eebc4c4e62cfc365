package tcp

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"gompi/internal/poll"
	"gompi/internal/sockets"
)

// backlog bounds the connections that wait for an accept while this rank computes. The kernel's
// limit may be lower.
const backlog = 4096

// listenerKey is the key of the listening socket. No sock has this slot.
const listenerKey = KeyBit | 0xffffffff

// listen opens the listening socket on the first free port of the range.
func (t *Transport) listen() error {
	low, high := t.cfg.PortLow, max(t.cfg.PortHigh, t.cfg.PortLow)
	if low < 0 || high > 65535 || low == 0 && high > 0 {
		return fmt.Errorf("ports %d-%d: want numbers from 1 to 65535", low, high)
	}
	n := high - low + 1
	for i := range n {
		// Ranks of one host start at different ports, to collide less often.
		port := low + (i+int(t.cfg.Rank))%n
		err := t.listenOn(port)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EADDRINUSE) {
			return err
		}
	}
	return fmt.Errorf("no free port to listen on in %d-%d", low, high)
}

func (t *Transport) listenOn(port int) error {
	fd, err := t.bind(port)
	if err != nil {
		return err
	}
	if err := unix.Listen(fd, backlog); err != nil {
		unix.Close(fd)
		return os.NewSyscallError("listen", err)
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		unix.Close(fd)
		return os.NewSyscallError("getsockname", err)
	}
	if err := t.set.Add(fd, listenerKey, poll.Read); err != nil {
		unix.Close(fd)
		return err
	}
	t.listener = fd
	t.card.port = toAddrPort(sa).Port()
	return nil
}

// bind returns a socket bound to port: on loopback, or all addresses (of IPv4 without IPv6).
func (t *Transport) bind(port int) (int, error) {
	if t.card.local {
		return bindTo(netip.AddrPortFrom(t.loopback, uint16(port)))
	}
	fd, err := bindTo(netip.AddrPortFrom(netip.IPv6Unspecified(), uint16(port)))
	if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EADDRNOTAVAIL) {
		return bindTo(netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(port)))
	}
	return fd, err
}

func bindTo(a netip.AddrPort) (int, error) {
	family, sa := toSockaddr(a)
	fd, err := sockets.OpenTCP(family)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	// A port is free although connections of its last owner linger.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if family == unix.AF_INET6 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	if err := unix.Bind(fd, sa); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("cannot listen on %v: %w", a, os.NewSyscallError("bind", err))
	}
	return fd, nil
}

func toSockaddr(a netip.AddrPort) (family int, sa unix.Sockaddr) {
	if a.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

func toAddrPort(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), uint16(sa.Port))
	}
	return netip.AddrPort{}
}
