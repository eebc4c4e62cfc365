package attach

import (
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/sockets/accepttest"
)

// answering lets a job be asked, which knows a process of each rank, until the test ends.
func answering(t *testing.T, s *Server, about string) {
	done := make(chan struct{})
	go func() {
		for {
			select {
			case q := <-s.Questions:
				q.Answer(Whereabouts{PID: q.Rank + 1, About: about})
			case <-done:
				return
			}
		}
	}()
	t.Cleanup(func() { close(done); s.Close() })
}

// Another user may take any name, and it is not listed.
func TestJobsAreDistinguishedAndOtherUsersIgnored(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	answering(t, Serve("test-one"), "the first")
	fd := otherUsersSocket(t, SocketPrefix()+"\x1b[31mevil")
	defer unix.Close(fd)
	if _, err := ask(SocketPrefix()+"\x1b[31mevil", 0); !errors.Is(err, errOtherUser) {
		t.Errorf("the stranger's socket: %v, want %v", err, errOtherUser)
	}
	if name, err := jobSocket("test-one"); err != nil || name != SocketPrefix()+"test-one" {
		t.Errorf("found %q, %v, want that of test-one", name, err)
	}
	answering(t, Serve("test-two"), "the second")
	_, err := jobSocket("")
	if err == nil || strings.Contains(err.Error(), "evil") {
		t.Fatalf("%v, want both jobs and no stranger's", err)
	}
	for _, want := range []string{`"test-one": the first`, `"test-two": the second`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

// otherUsersSocket returns a socket that another user listens on.
func otherUsersSocket(t *testing.T, name string) int {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const nobody, same = 65534, ^uintptr(0)
	// The system calls themselves change this thread alone.
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, same, nobody, same); e != 0 {
		t.Fatal(e)
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: name})
	}
	if err == nil {
		err = unix.Listen(fd, 5)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, same, 0, same); e != 0 {
		t.Fatal(e)
	}
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// A socket that has as many waiting as it takes, as anybody can make one, is no job.
func TestSocketsThatAcceptNoConnectionArePassedOver(t *testing.T) {
	name := SocketPrefix() + "full"
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(fd)
		err = errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: name}), unix.Listen(fd, 0))
	}
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		var conn net.Conn
		if conn, err = net.Dial("unix", name); err == nil {
			defer conn.Close()
		}
	}
	if _, err := ask(name, 0); !errors.Is(err, errUnreachable) {
		t.Errorf("%v, want %v", err, errUnreachable)
	}
	if _, err := jobSocket("full"); err == nil || !strings.Contains(err.Error(), `no gompirun of yours runs that`) {
		t.Errorf("%v, want no job", err)
	}
}

// A job that cannot be asked for a while, since descriptors are exhausted, can be
// asked afterwards.
func TestAServerOutlivesErrors(t *testing.T) {
	name := SocketPrefix() + "tired"
	l, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	tired := &accepttest.Tired{Listener: l}
	tired.Left.Store(1)
	answering(t, serve(tired), "")
	if w, err := ask(name, 6); err != nil || w.PID != 7 {
		t.Errorf("%+v, %v; want an answer", w, err)
	}
}
