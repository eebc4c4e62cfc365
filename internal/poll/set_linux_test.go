//go:build linux && !gompi_portable

package poll

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestInheritedDoorbellWakes(t *testing.T) {
	bell, err := unix.Eventfd(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	outside, err := unix.Dup(bell) // the descriptor of another process of the host
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
	for _, way := range []string{"epoll_pwait2", "ppoll", "wakers"} {
		defer noPwait2.Store(noPwait2.Swap(way == "ppoll"))
		s := newSet(t)
		r, w := pipe(t)
		add := func() error { return s.Add(r, 1, Read) }
		if way == "wakers" {
			add = func() error { return s.AddWaker(r) }
		}
		if err := add(); err != nil {
			t.Fatal(err)
		}
		doorbell := s.doorbell
		for what, ring := range map[string]func(){
			"a descriptor": func() { write(t, w) }, "Wake": s.Wake, "Interrupt": s.Interrupt,
			"the doorbell": func() { Ring(doorbell) },
		} {
			for _, before := range []bool{true, false} {
				var rung sync.WaitGroup
				var over atomic.Bool
				if before {
					ring()
				} else {
					rung.Go(func() { asleep(s, &over); ring() })
				}
				if !s.Sleep(timeout) {
					t.Errorf("%s: %s, before %v: Sleep lasted to its end", way, what, before)
				}
				over.Store(true)
				rung.Wait() // Interrupt and EndInterrupt are of one owner at a time
				if what == "a descriptor" {
					read(t, r)
				}
				s.EndInterrupt()
				for s.Sleep(time.Millisecond) { // both may have been told of a Wake
					s.Ready(make([]Event, 1))
				}
			}
		}
	}
}

// asleep returns when a goroutine sleeps, or is about to, or when over is set: a signal may end the
// sleep first.
func asleep(s *Set, over *atomic.Bool) {
	for s.sleeping.Load() == 0 && !over.Load() {
		runtime.Gosched()
	}
}

// The driver may call Ready before the thread runs that an Interrupt has woken.
func TestReadyTakesNoInterruptAway(t *testing.T) {
	s := newSet(t)
	for range 100 {
		rang := make(chan bool)
		go func() { rang <- s.Sleep(timeout) }()
		s.Interrupt()
		s.Ready(make([]Event, 1))
		if !<-rang {
			t.Fatal("Sleep lasted to its end")
		}
		s.EndInterrupt()
	}
	// A signal ends a Sleep, too, but not ten in a row. One ring ends one Sleep only, so each try
	// rings anew.
	for tries := 1; ; tries++ {
		s.Interrupt()
		s.EndInterrupt()
		s.Ready(make([]Event, 1))
		if !s.Sleep(time.Millisecond) {
			break
		}
		if tries == 10 {
			t.Fatal("Ready did not silence the doorbell when all had heard it")
		}
	}
}

func TestSleepIsOver(t *testing.T) {
	for _, without := range []bool{false, true} {
		was := noPwait2.Swap(without)
		begin, s := time.Now(), newSet(t)
		for s.Sleep(20 * time.Millisecond) { // a signal has ended it
			begin = time.Now()
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
