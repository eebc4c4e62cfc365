//go:build linux && !gompi_portable

package poll

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestInheritedDoorbellWakes(t *testing.T) {
	bell, err := unix.Eventfd(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	outside, err := unix.Dup(bell) // what another process of the host holds
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(outside)
	s, err := New(bell)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 3 {
		if _, err := unix.Write(outside, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
			t.Fatal(err)
		}
		s.Arm()
		if !rings(s, timeout) {
			t.Fatal("the doorbell rings, but C says nothing")
		}
		s.Disarm()
		var buf [4]Event
		if n := s.Ready(buf[:]); n != 0 {
			t.Errorf("the doorbell showed as %v", buf[:n])
		}
	}
	s.Arm()
	if rings(s, brief) {
		t.Error("Ready did not silence the doorbell")
	}
	s.Disarm()
}

func TestNewRefusesWhatIsNoDescriptor(t *testing.T) {
	if s, err := New(1 << 20); err == nil {
		s.Close()
		t.Error("New took a descriptor that is not open")
	}
}

// The kernel lets five sets be nested. A waker may be a set that holds sets: UCX's over TCP is two.
func TestWakersMayBeSetsOfSets(t *testing.T) {
	for depth := range 4 {
		s := newSet(t)
		fd, w := pipe(t)
		for range depth {
			set, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { unix.Close(set) })
			e := unix.EpollEvent{Events: unix.EPOLLIN}
			if err := unix.EpollCtl(set, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
				t.Fatal(err)
			}
			fd = set
		}
		if err := s.AddWaker(fd); err != nil {
			t.Fatalf("%d sets below: %v", depth, err)
		}
		s.Arm()
		write(t, w)
		within(t, "wake-up", func() { <-s.C() })
		s.Disarm()
	}
}

func TestNothingAllocates(t *testing.T) {
	s := newSet(t)
	r, w := pipe(t)
	if err := s.Add(r, 1, Read); err != nil {
		t.Fatal(err)
	}
	write(t, w)
	var buf [4]Event
	if n := testing.AllocsPerRun(100, func() {
		s.Ready(buf[:])
		s.Wake()
		s.Arm()
		<-s.C()
		s.Disarm()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
