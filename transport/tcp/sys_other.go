//go:build unix && (!linux || gompi_portable)

package tcp

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// The same with functions of every Unix; see sys_linux.go. The build tag gompi_portable selects
// this file on Linux, for tests.

const maxVector = 32

// A vector is a list of byte slices for one system call.
type vector struct {
	bufs  [][]byte
	total int
}

func (v *vector) reset() {
	clear(v.bufs)
	v.bufs, v.total = v.bufs[:0], 0
}

// add appends b and reports whether there is room for two more.
func (v *vector) add(b []byte) bool {
	if len(b) > 0 {
		v.bufs = append(v.bufs, b)
		v.total += len(b)
	}
	return len(v.bufs)+2 <= maxVector
}

// send writes v, as far as the socket takes it.
func (v *vector) send(fd int) (int, syscall.Errno) {
	n, err := unix.SendmsgBuffers(fd, v.bufs, nil, nil, unix.MSG_DONTWAIT)
	return n, errno(err)
}

// receive reads available data, here only into the first slice of v.
func (v *vector) receive(fd int) (int, syscall.Errno) {
	v.total = len(v.bufs[0])
	return receive(fd, v.bufs[0])
}

func receive(fd int, b []byte) (int, syscall.Errno) {
	n, err := unix.Read(fd, b)
	return max(n, 0), errno(err)
}

func send(fd int, b []byte) (int, syscall.Errno) {
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

func socket(family int) (int, error) {
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err != nil {
		return -1, err
	}
	return prepare(fd)
}

func accept(fd int) (int, error) {
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

func tune(fd int, near bool) {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if !near {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	}
}

// undelivered is unknown on some systems. Only a peer that closes the connection, after it has read
// the goodbye, shows that all data has arrived.
func undelivered(int, bool) int { return 1 }

// silent is unknown on some systems.
func silent(int) bool { return false }
