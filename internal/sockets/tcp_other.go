//go:build unix && (!linux || gompi_portable)

package sockets

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// The same with functions of every Unix; see tcp_linux.go. The build tag gompi_portable selects
// this file on Linux, for tests.

const maxVector = 32

// A Vector is a list of byte slices for one system call.
type Vector struct {
	bufs  [][]byte
	total int
}

// Reset empties v.
func (v *Vector) Reset() {
	clear(v.bufs)
	v.bufs, v.total = v.bufs[:0], 0
}

// Add appends b and reports whether there is room for two more.
func (v *Vector) Add(b []byte) bool {
	if len(b) > 0 {
		v.bufs = append(v.bufs, b)
		v.total += len(b)
	}
	return len(v.bufs)+2 <= maxVector
}

// Len returns the bytes of v.
func (v *Vector) Len() int { return v.total }

// Send writes v, as far as the socket takes it.
func (v *Vector) Send(fd int) (int, syscall.Errno) {
	n, err := unix.SendmsgBuffers(fd, v.bufs, nil, nil, unix.MSG_DONTWAIT)
	return n, errno(err)
}

// Receive reads available data, here only into the first slice of v.
func (v *Vector) Receive(fd int) (int, syscall.Errno) {
	v.total = len(v.bufs[0])
	return Receive(fd, v.bufs[0])
}

func Receive(fd int, b []byte) (int, syscall.Errno) {
	n, err := unix.Read(fd, b)
	return max(n, 0), errno(err)
}

func Send(fd int, b []byte) (int, syscall.Errno) {
	n, err := unix.SendmsgN(fd, b, nil, nil, unix.MSG_DONTWAIT)
	return n, errno(err)
}

func errno(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	if e, ok := err.(syscall.Errno); ok {
		return e
	}
	return unix.EIO
}

func OpenTCP(family int) (int, error) {
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err != nil {
		return -1, err
	}
	return prepare(fd)
}

func AcceptTCP(fd int) (int, error) {
	c, _, err := unix.Accept(fd)
	if err != nil {
		return -1, err
	}
	return prepare(c)
}

func prepare(fd int) (int, error) {
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func Tune(fd int, near bool) {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if !near {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	}
}

// Undelivered is unknown on some systems. Only a peer that closes the connection, after it has read
// the goodbye, shows that all data has arrived.
func Undelivered(int, bool) int { return 1 }

// Silent is unknown on some systems.
func Silent(int) bool { return false }
