package sockets

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Descriptors that are not all there are given back: TCP needs some.
func TestFewerDescriptorsThanWantedAreClosed(t *testing.T) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	passed := [][]byte{unix.UnixRights(fd), nil}
	fds, err := ReceiveFDs(2, func(data, oob []byte) (int, int, error) {
		n := copy(oob, passed[0])
		passed = passed[1:]
		return min(n, 1), n, nil
	})
	if err == nil || fds != nil {
		t.Errorf("got %v, %v; want an error alone", fds, err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != unix.EBADF {
		t.Errorf("the descriptor that came: %v, want it closed", err)
	}
}
