//go:build linux && !gompi_portable

package sockets

import (
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// System calls on non-blocking sockets of TCP. On the message path they never block, so they are
// raw (RawSyscall), without the Go scheduler, unless they may copy so much that a garbage
// collection would wait for them.

// rawLimit is the most bytes that a raw system call may move: about 10 us of copying.
const rawLimit = 64 << 10

const maxVector = 128

// A Vector is a list of byte slices for one system call.
type Vector struct {
	iov   [maxVector]unix.Iovec
	n     int
	total int
}

// Reset empties v.
func (v *Vector) Reset() {
	for i := range v.n {
		v.iov[i].Base = nil // keeps no memory alive
	}
	v.n, v.total = 0, 0
}

// Add appends b and reports whether there is room for two more.
func (v *Vector) Add(b []byte) bool {
	if len(b) > 0 {
		v.iov[v.n].Base = unsafe.SliceData(b)
		v.iov[v.n].SetLen(len(b))
		v.n++
		v.total += len(b)
	}
	return v.n+2 <= maxVector
}

// Len returns the bytes of v.
func (v *Vector) Len() int { return v.total }

// Send writes v, as far as the socket takes it.
func (v *Vector) Send(fd int) (int, syscall.Errno) {
	var msg unix.Msghdr
	msg.Iov = &v.iov[0]
	msg.SetIovlen(v.n)
	return invoke(v.total, unix.SYS_SENDMSG, fd, unsafe.Pointer(&msg), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

// Receive reads available data into v.
func (v *Vector) Receive(fd int) (int, syscall.Errno) {
	return invoke(v.total, unix.SYS_READV, fd, unsafe.Pointer(&v.iov[0]), uintptr(v.n))
}

// Receive reads available data, up to len(b).
func Receive(fd int, b []byte) (int, syscall.Errno) {
	return invoke(0, unix.SYS_READ, fd, unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)))
}

// Send writes b, as far as the socket takes it.
func Send(fd int, b []byte) (int, syscall.Errno) {
	r, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))),
		uintptr(len(b)),
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return int(r), e
}

func invoke(size int, trap uintptr, fd int, p unsafe.Pointer, arg uintptr) (int, syscall.Errno) {
	if size <= rawLimit {
		r, _, e := unix.RawSyscall(trap, uintptr(fd), uintptr(p), arg)
		return int(r), e
	}
	r, _, e := unix.Syscall(trap, uintptr(fd), uintptr(p), arg)
	return int(r), e
}

// OpenTCP returns a non-blocking socket.
func OpenTCP(family int) (int, error) {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	NoteInode(fd)
	return fd, err
}

// AcceptTCP returns the next connection of a listening socket.
func AcceptTCP(fd int) (int, error) {
	c, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	NoteInode(c)
	return c, err
}

// Keepalive detects the loss of a peer's host while nothing is being sent. These are seconds and a
// count.
const (
	keepIdle     = 10
	keepInterval = 2
	keepCount    = 5
)

// Tune sets the options of a connection; near means one on loopback. All are improvements: a
// connection works without an option that the kernel refuses.
func Tune(fd int, near bool) {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if near {
		avoidPacing(fd)
		return
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, keepIdle)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, keepInterval)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, keepCount)
}

// avoidPacing replaces the congestion control bbr, whose pacing halves the bandwidth of loopback
// (5.3 against 10.1 GB/s). cubic needs a privilege if it is not on the list of permitted ones; reno
// is open to every user.
func avoidPacing(fd int) {
	now, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	if err != nil || !strings.HasPrefix(now, "bbr") {
		return
	}
	for _, name := range []string{"cubic", "reno"} {
		if unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name) == nil {
			return
		}
	}
}

// Undelivered returns the number of bytes that the peer's host may not have received. On loopback
// all sent bytes have arrived.
func Undelivered(fd int, near bool) int {
	request := uint(unix.SIOCOUTQ)
	if near {
		request = unix.SIOCOUTQNSD
	}
	n, err := unix.IoctlGetInt(fd, request)
	if err != nil {
		return 0
	}
	return n
}

// Silent reports whether the peer's host has stopped answering. TCP_USER_TIMEOUT would detect that,
// too, but it also ends connections to a live host whose process does not read for so long, such as
// a rank that computes.
func Silent(fd int) bool {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	return err == nil && unanswered(info.Retransmits, info.Probes, info.Last_ack_recv)
}

// silentMillis is the time without any answer, in milliseconds, after which a host counts as gone
// if it was also asked more than once.
const silentMillis = 30_000

// unanswered reports whether a connection's host counts as gone: retransmits and window
// probes without an answer, and milliseconds since the last acknowledgment.
func unanswered(retransmits, probes uint8, sinceAck uint32) bool {
	return (retransmits >= 2 || probes >= 2) && sinceAck >= silentMillis
}
