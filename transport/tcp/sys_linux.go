//go:build linux && !gompi_portable

package tcp

import (
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"gompi/internal/sockets"
)

// System calls on non-blocking sockets. On the message path they never block, so they are raw
// (RawSyscall), without the Go scheduler, unless they may copy so much that a garbage collection
// would wait for them.

// rawLimit is the most bytes that a raw system call may move: about 10 us of copying.
const rawLimit = 64 << 10

const maxVector = 128

// A vector is a list of byte slices for one system call.
type vector struct {
	iov   [maxVector]unix.Iovec
	n     int
	total int
}

func (v *vector) reset() {
	for i := range v.n {
		v.iov[i].Base = nil // keeps no memory alive
	}
	v.n, v.total = 0, 0
}

// add appends b and reports whether there is room for two more.
func (v *vector) add(b []byte) bool {
	if len(b) > 0 {
		v.iov[v.n].Base = unsafe.SliceData(b)
		v.iov[v.n].SetLen(len(b))
		v.n++
		v.total += len(b)
	}
	return v.n+2 <= maxVector
}

// send writes v, as far as the socket takes it.
func (v *vector) send(fd int) (int, syscall.Errno) {
	var msg unix.Msghdr
	msg.Iov = &v.iov[0]
	msg.SetIovlen(v.n)
	return invoke(v.total, unix.SYS_SENDMSG, fd, unsafe.Pointer(&msg), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

// receive reads available data into v.
func (v *vector) receive(fd int) (int, syscall.Errno) {
	return invoke(v.total, unix.SYS_READV, fd, unsafe.Pointer(&v.iov[0]), uintptr(v.n))
}

// receive reads available data, up to len(b).
func receive(fd int, b []byte) (int, syscall.Errno) {
	return invoke(0, unix.SYS_READ, fd, unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)))
}

// send writes b, as far as the socket takes it.
func send(fd int, b []byte) (int, syscall.Errno) {
	r, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
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

func socket(family int) (int, error) {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	sockets.NoteInode(fd)
	return fd, err
}

func accept(fd int) (int, error) {
	c, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	sockets.NoteInode(c)
	return c, err
}

// Keepalive detects the loss of a peer's host while nothing is being sent. These are seconds and a
// count.
const (
	keepIdle     = 10
	keepInterval = 2
	keepCount    = 5
)

// tune sets the options of a connection. All are improvements: a connection works without an option
// that the kernel refuses.
func tune(fd int, near bool) {
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

// undelivered returns how many bytes the peer's host may not have received. On loopback all sent
// bytes have arrived.
func undelivered(fd int, near bool) int {
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

// silent reports whether the peer's host has stopped answering. TCP_USER_TIMEOUT would detect that,
// too, but it also ends connections to a live host whose process does not read for so long, such as
// a rank that computes.
func silent(fd int) bool {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	return err == nil && unanswered(info.Retransmits, info.Probes, info.Last_ack_recv)
}
