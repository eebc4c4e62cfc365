package remote

import (
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestQuickenReachesTheSocketsOfAProcess(t *testing.T) {
	pidfd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		t.Skipf("no pidfd here: %v", err)
	}
	defer unix.Close(pidfd)
	if fd, err := unix.PidfdGetfd(pidfd, 0, 0); err != nil {
		t.Skipf("no access to descriptors of processes here: %v", err)
	} else {
		unix.Close(fd)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	conn := c.(*net.TCPConn)
	delays := func() bool {
		raw, err := conn.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		value := 0
		if cerr := raw.Control(func(fd uintptr) {
			value, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NODELAY)
		}); cerr != nil || err != nil {
			t.Fatal(cerr, err)
		}
		return value == 0
	}
	if err := conn.SetNoDelay(false); err != nil || !delays() {
		t.Fatalf("%v: the socket does not delay at first", err)
	}
	if quicken(os.Getpid()); delays() {
		t.Error("the socket still delays")
	}
}
