package poll

import (
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/transport"
)

var _ transport.Parker = (*Set)(nil)

const timeout = time.Minute

func newSet(t testing.TB) *Set {
	t.Helper()
	s, err := New(-1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// pipe returns the non-blocking ends of a pipe.
func pipe(t testing.TB) (r, w int) {
	t.Helper()
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		t.Fatal(err)
	}
	for _, fd := range p {
		if err := unix.SetNonblock(fd, true); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
	}
	return p[0], p[1]
}

func write(t testing.TB, fd int) {
	if _, err := unix.Write(fd, []byte{1}); err != nil {
		t.Error(err)
	}
}

func read(t testing.TB, fd int) {
	var b [1]byte
	if _, err := unix.Read(fd, b[:]); err != nil {
		t.Error(err)
	}
}

// within fails the test if f does not return soon.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
	case <-time.After(timeout):
		t.Fatalf("%s did not return", what)
	}
}

func TestReadyReportsALevel(t *testing.T) {
	s := newSet(t)
	r, w := pipe(t)
	if err := s.Add(r, 7, Read); err != nil {
		t.Fatal(err)
	}
	var buf [4]Event
	if n := s.Ready(buf[:]); n != 0 {
		t.Fatalf("an empty pipe is ready: %v", buf[:n])
	}
	write(t, w)
	for range 2 {
		if n := s.Ready(buf[:]); n != 1 || buf[0] != (Event{7, Read}) {
			t.Fatalf("Ready = %v, want one event of key 7, read", buf[:n])
		}
	}
	read(t, r)
	if n := s.Ready(buf[:]); n != 0 {
		t.Fatalf("a drained pipe is ready: %v", buf[:n])
	}
}

func TestModChangesInterestAndKey(t *testing.T) {
	s := newSet(t)
	_, w := pipe(t)
	const key = 1<<63 | 5<<32 | 9
	if err := s.Add(w, 1, 0); err != nil {
		t.Fatal(err)
	}
	var buf [4]Event
	if n := s.Ready(buf[:]); n != 0 {
		t.Fatalf("no interest, but ready: %v", buf[:n])
	}
	if err := s.Mod(w, key, Write); err != nil {
		t.Fatal(err)
	}
	if n := s.Ready(buf[:]); n != 1 || buf[0] != (Event{key, Write}) {
		t.Fatalf("Ready = %v, want key %#x, write", buf[:n], uint64(key))
	}
	if err := s.Del(w); err != nil {
		t.Fatal(err)
	}
	if n := s.Ready(buf[:]); n != 0 {
		t.Fatalf("deleted, but ready: %v", buf[:n])
	}
}

func TestHangupIsReadable(t *testing.T) {
	s := newSet(t)
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[0])
	if err := s.Add(p[0], 1, Read); err != nil {
		t.Fatal(err)
	}
	unix.Close(p[1])
	var buf [4]Event
	if n := s.Ready(buf[:]); n != 1 || buf[0].Ready&Read == 0 {
		t.Fatalf("Ready = %v after hang-up, want read", buf[:n])
	}
}

// rings reports whether C delivers within d.
func rings(s *Set, d time.Duration) bool {
	select {
	case <-s.C():
		return true
	case <-time.After(d):
		return false
	}
}

// brief is a test's wait for an event that must not happen.
const brief = 20 * time.Millisecond

func TestWakeIsKeptUntilReady(t *testing.T) {
	s := newSet(t)
	s.Wake()
	s.Arm()
	if !rings(s, timeout) {
		t.Fatal("a Wake before Arm was lost")
	}
	if rings(s, brief) {
		t.Error("one Wake was heard twice")
	}
	go s.Wake()
	if !rings(s, timeout) {
		t.Fatal("a Wake after Arm was lost")
	}
	s.Disarm()
}

func TestArmCountsWhatIsReadyAlready(t *testing.T) {
	s := newSet(t)
	r, w := pipe(t)
	if err := s.Add(r, 1, Read); err != nil {
		t.Fatal(err)
	}
	write(t, w)
	for range 3 {
		s.Arm()
		if !rings(s, timeout) {
			t.Fatal("armed with a readable pipe, but C says nothing")
		}
		s.Disarm()
	}
}

func TestReadinessRingsOnceForAnArm(t *testing.T) {
	s := newSet(t)
	r, w := pipe(t)
	if err := s.Add(r, 1, Read); err != nil {
		t.Fatal(err)
	}
	s.Arm()
	write(t, w)
	if !rings(s, timeout) {
		t.Fatal("C does not deliver")
	}
	write(t, w)
	if rings(s, brief) {
		t.Error("C delivered twice for one Arm")
	}
	s.Disarm()
}

func TestDisarmedSetIsQuiet(t *testing.T) {
	s := newSet(t)
	r, w := pipe(t)
	if err := s.Add(r, 1, Read); err != nil {
		t.Fatal(err)
	}
	s.Arm()
	s.Disarm()
	write(t, w)
	if rings(s, brief) {
		t.Error("C delivered although it was not asked for")
	}
}

func TestArmedSetNoticesDescriptorsAdded(t *testing.T) {
	s := newSet(t)
	r, w := pipe(t)
	write(t, w)
	s.Arm()
	if err := s.Add(r, 1, Read); err != nil {
		t.Fatal(err)
	}
	if !rings(s, timeout) {
		t.Error("a ready descriptor was added, but C says nothing")
	}
	s.Disarm()
}

// One side sleeps whenever it sees nothing, the other makes something as soon
// as the last was seen: a single lost wake-up stops both.
func TestNoWakeUpIsLost(t *testing.T) {
	for _, way := range []string{"descriptor", "Wake"} {
		t.Run(way, func(t *testing.T) {
			s := newSet(t)
			r, w := pipe(t)
			if err := s.Add(r, 1, Read); err != nil {
				t.Fatal(err)
			}
			const rounds = 5000
			var made atomic.Int64
			back := make(chan struct{}, 1)
			go func() {
				for range rounds {
					made.Add(1)
					if way == "Wake" {
						s.Wake()
					} else {
						write(t, w)
					}
					<-back
				}
			}()
			var buf [4]Event
			for seen := int64(0); seen < rounds; {
				n := s.Ready(buf[:])
				if n > 0 {
					read(t, r)
				}
				if n > 0 || way == "Wake" && made.Load() > seen {
					seen++
					back <- struct{}{}
					continue
				}
				s.Arm()
				if !rings(s, timeout) {
					t.Fatalf("stuck after %d of %d", seen, rounds)
				}
				s.Disarm()
			}
		})
	}
}

func TestArmedSetUsesNoProcessor(t *testing.T) {
	s := newSet(t)
	s.Arm()
	before := cpu(t)
	rings(s, 300*time.Millisecond)
	if used := cpu(t) - before; used > 100*time.Millisecond {
		t.Errorf("%v of processor time went by while armed", used)
	}
	s.Disarm()
}

func cpu(t *testing.T) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A waker wakes an armed Set, and no other, as often as it is readable, and Ready does not report
// it.
func TestWakersWakeWhileArmed(t *testing.T) {
	s := newSet(t)
	r, w := pipe(t)
	if err := s.AddWaker(r); err != nil {
		t.Fatal(err)
	}
	write(t, w)
	quiet := func(when string) {
		t.Helper()
		select {
		case <-s.C():
			t.Errorf("%s: it was woken", when)
		case <-time.After(20 * time.Millisecond):
		}
	}
	quiet("before Arm")
	for range 3 {
		s.Arm()
		within(t, "wake-up", func() { <-s.C() })
		s.Disarm()
	}
	if n := s.Ready(make([]Event, 4)); n != 0 {
		t.Errorf("Ready reports %d events, want 0", n)
	}
	quiet("after Disarm")
	read(t, r)
	s.Arm()
	quiet("armed, with nothing to read")
	write(t, w)
	within(t, "wake-up", func() { <-s.C() })
	s.Disarm()
	s.DelWaker(r)
	s.Arm()
	quiet("after DelWaker")
	s.Disarm()
}

func TestWakeAfterCloseIsHarmless(t *testing.T) {
	s := newSet(t)
	s.Close()
	s.Wake()
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestCloseWhileArmed(t *testing.T) {
	s := newSet(t)
	s.Arm()
	within(t, "Close", func() { s.Close() })
}

func BenchmarkReadyNothing(b *testing.B) {
	s := newSet(b)
	r, _ := pipe(b)
	if err := s.Add(r, 1, Read); err != nil {
		b.Fatal(err)
	}
	var buf [8]Event
	for b.Loop() {
		s.Ready(buf[:])
	}
}
