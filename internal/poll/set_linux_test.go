//go:build linux && !gompi_portable

package poll

import (
	"runtime"
	"testing"
	"time"

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

// Whatever is to end a Sleep ends it, also if it has come before.
func TestSleepEnds(t *testing.T) {
	s := newSet(t)
	r, w := pipe(t)
	if err := s.Add(r, 1, Read); err != nil {
		t.Fatal(err)
	}
	doorbell, empty := s.doorbell, func() { read(t, r) }
	for _, tt := range []struct {
		what  string
		ring  func()
		after func()
	}{
		{"a descriptor", func() { write(t, w) }, empty}, {"Wake", s.Wake, nil}, {"Interrupt", s.Interrupt, nil},
		{"the doorbell", func() { Ring(doorbell) }, nil},
	} {
		for _, before := range []bool{true, false} {
			if before {
				tt.ring()
			} else {
				go func() {
					for s.sleeping.Load() == 0 {
						runtime.Gosched()
					}
					tt.ring()
				}()
			}
			if !s.Sleep(timeout) {
				t.Errorf("%s, before %v: Sleep lasted to its end", tt.what, before)
			}
			if tt.after != nil {
				tt.after()
			}
			for s.Sleep(time.Millisecond) { // both may have been told of a Wake
			}
		}
	}
}

func TestSleepIsOver(t *testing.T) {
	for _, without := range []bool{false, true} {
		was := noPwait2.Swap(without)
		begin := time.Now()
		if s := newSet(t); s.Sleep(20 * time.Millisecond) {
			t.Error("an empty set has ended Sleep")
		}
		if d := time.Since(begin); d < 20*time.Millisecond {
			t.Errorf("it lasted %v, want 20ms", d)
		}
		noPwait2.Store(was)
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
		s.Interrupt()
		s.Sleep(timeout)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
