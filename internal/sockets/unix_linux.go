package sockets

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// SameUser returns an error if another user runs the process at the other end of fd: any process
// may listen on an abstract name, or connect to one.
func SameUser(fd int) error {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return err
	}
	if int(cred.Uid) != unix.Geteuid() {
		return fmt.Errorf("it belongs to user %d, want %d", cred.Uid, unix.Geteuid())
	}
	return nil
}

// batch is the largest number of descriptors in one control message.
const batch = 200

// SendFDs passes descriptors on, each with one byte of data.
func SendFDs(fds []int, send func(data, oob []byte) error) error {
	for len(fds) > 0 {
		n := min(len(fds), batch)
		if err := send(make([]byte, n), unix.UnixRights(fds[:n]...)); err != nil {
			return err
		}
		fds = fds[n:]
	}
	return nil
}

// ReceiveFDs receives n descriptors, each with one byte of data, or none.
func ReceiveFDs(n int, receive func(data, oob []byte) (size, oobn int, err error)) (fds []int, err error) {
	defer func() {
		if err != nil {
			CloseAll(fds)
			fds = nil
		}
	}()
	for len(fds) < n {
		data := make([]byte, n-len(fds))
		oob := make([]byte, unix.CmsgSpace(4*batch))
		size, oobn, err := receive(data, oob)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fds, err
		}
		got, err := rights(oob[:oobn])
		fds = append(fds, got...)
		if err != nil || size != len(got) || size == 0 {
			few := fmt.Errorf("it passed %d descriptors with %d bytes, and closed or failed after %d of %d",
				len(got), size, len(fds), n)
			return fds, errors.Join(few, err)
		}
	}
	return fds, nil
}

// CloseAll closes descriptors.
func CloseAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

func rights(oob []byte) ([]int, error) {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var fds []int
	for i := range msgs {
		got, err := unix.ParseUnixRights(&msgs[i])
		if err != nil {
			return nil, err
		}
		fds = append(fds, got...)
	}
	return fds, nil
}

// Peer returns the user and the process at the other end of a connection. For a listener's end,
// that is the process that called listen.
func Peer(conn *net.UnixConn) (user, pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var cred *unix.Ucred
	if e := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); e != nil {
		return 0, 0, e
	}
	if err != nil {
		return 0, 0, err
	}
	return int(cred.Uid), int(cred.Pid), nil
}

// SameUserConn is SameUser for a connection.
func SameUserConn(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var refused error
	err = raw.Control(func(fd uintptr) { refused = SameUser(int(fd)) })
	return errors.Join(err, refused)
}
