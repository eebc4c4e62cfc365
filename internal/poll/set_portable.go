//go:build unix && (!linux || gompi_portable)

package poll

import (
	"fmt"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// A Set is a set of descriptors, and implements transport.Parker. This implementation needs only
// poll(2) and a pipe, and blocks a thread while armed. It is for systems on which gompi is
// developed, not deployed. The build tag gompi_portable selects it on Linux, for tests.
type Set struct {
	bell bell
	gone chan struct{} // closed when the watcher has ended

	mu        sync.Mutex
	change    sync.Cond
	fds       []unix.PollFd // the read end of interrupt first
	keys      []uint64      // of fds
	wakers    []unix.PollFd // watched while armed, but not reported by Ready
	interrupt [2]int        // a pipe: interrupts the watcher's poll
	armed     bool
	closed    bool
}

// New returns an empty Set. Doorbells are inherited on Linux only: doorbell must be -1.
func New(doorbell int) (*Set, error) {
	if doorbell >= 0 {
		return nil, fmt.Errorf("cannot make a poll set: inherited doorbell %d: only Linux has those", doorbell)
	}
	s := &Set{bell: newBell(), gone: make(chan struct{})}
	s.change.L = &s.mu
	if err := unix.Pipe(s.interrupt[:]); err != nil {
		return nil, fmt.Errorf("cannot make a poll set: %w", os.NewSyscallError("pipe", err))
	}
	for _, fd := range s.interrupt {
		unix.CloseOnExec(fd)
		if err := unix.SetNonblock(fd, true); err != nil {
			unix.Close(s.interrupt[0])
			unix.Close(s.interrupt[1])
			return nil, fmt.Errorf("cannot make a poll set: %w", os.NewSyscallError("fcntl", err))
		}
	}
	s.fds = []unix.PollFd{{Fd: int32(s.interrupt[0]), Events: unix.POLLIN}}
	s.keys = []uint64{bellKey}
	go s.watch() // ends with Close
	return s, nil
}

// Close releases the Set, but not the added descriptors. No other method may run at the same time,
// except Wake, which then has no effect.
func (s *Set) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.changed()
	s.mu.Unlock()
	<-s.gone
	unix.Close(s.interrupt[0])
	unix.Close(s.interrupt[1])
	return nil
}

// Add watches fd, which must be non-blocking. Events carry key, which need not be unique but must
// not be ^uint64(0).
func (s *Set) Add(fd int, key uint64, ev Interest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.find(fd) >= 0 {
		return fmt.Errorf("descriptor %d is already in the poll set", fd)
	}
	s.fds = append(s.fds, unix.PollFd{Fd: int32(fd), Events: mask(ev)})
	s.keys = append(s.keys, key)
	s.changed()
	return nil
}

// Mod changes the Interest in fd. With no Interest, only errors are reported.
func (s *Set) Mod(fd int, key uint64, ev Interest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(fd)
	if i < 0 {
		return fmt.Errorf("descriptor %d is not in the poll set", fd)
	}
	s.fds[i].Events, s.keys[i] = mask(ev), key
	s.changed()
	return nil
}

// Del stops watching fd, and must be called before fd is closed.
func (s *Set) Del(fd int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(fd)
	if i < 0 {
		return fmt.Errorf("descriptor %d is not in the poll set", fd)
	}
	s.fds = slices.Delete(s.fds, i, i+1)
	s.keys = slices.Delete(s.keys, i, i+1)
	s.changed()
	return nil
}

// AddWaker makes C deliver also when fd is readable between Arm and Disarm. Ready does not report
// fd.
func (s *Set) AddWaker(fd int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakers = append(s.wakers, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	s.changed()
	return nil
}

// DelWaker undoes AddWaker, and must be called before fd is closed.
func (s *Set) DelWaker(fd int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakers = slices.DeleteFunc(s.wakers, func(p unix.PollFd) bool { return p.Fd == int32(fd) })
	s.changed()
}

func (s *Set) find(fd int) int {
	return slices.IndexFunc(s.fds, func(p unix.PollFd) bool { return p.Fd == int32(fd) })
}

// changed makes the watcher poll the changed descriptors. s.mu is held. The write fails only if the
// pipe is full: then the watcher's poll is interrupted anyway.
func (s *Set) changed() {
	s.change.Signal()
	_, _ = unix.Write(s.interrupt[1], []byte{1})
}

func mask(ev Interest) int16 {
	var m int16
	if ev&Read != 0 {
		m |= unix.POLLIN
	}
	if ev&Write != 0 {
		m |= unix.POLLOUT
	}
	return m
}

// Ready stores the events of ready descriptors in buf and returns their number. Ready never blocks.
func (s *Set) Ready(buf []Event) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	watched := s.fds[1:]
	if k, _ := unix.Poll(watched, 0); k <= 0 {
		return 0
	}
	n := 0
	for i, p := range watched {
		if p.Revents != 0 && n < len(buf) {
			buf[n] = Event{Key: s.keys[i+1], Ready: interest(p.Revents)}
			n++
		}
	}
	return n
}

func interest(revents int16) Interest {
	var r Interest
	if revents&^unix.POLLOUT != 0 {
		r |= Read
	}
	if revents&^unix.POLLIN != 0 {
		r |= Write
	}
	return r
}

// Arm makes C deliver, once, when a descriptor is ready or becomes ready before Disarm.
func (s *Set) Arm() {
	s.mu.Lock()
	s.armed = true
	s.change.Signal()
	s.mu.Unlock()
}

// Disarm undoes Arm.
func (s *Set) Disarm() {
	s.mu.Lock()
	s.armed = false
	s.changed()
	s.mu.Unlock()
}

// C delivers after Wake, and when a descriptor is ready between Arm and Disarm. A delivery may be
// spurious.
func (s *Set) C() <-chan struct{} { return s.bell }

// Wake makes C deliver, never blocks, and needs no system call.
func (s *Set) Wake() { s.bell.ring() }

// watch polls a copy of the descriptors while the Set is armed, and starts over when changed
// interrupts.
func (s *Set) watch() {
	defer close(s.gone)
	var fds []unix.PollFd
	var junk [64]byte
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for !s.armed && !s.closed {
			s.change.Wait()
		}
		if s.closed {
			return
		}
		fds = append(append(fds[:0], s.fds...), s.wakers...)
		s.mu.Unlock()
		n, _ := unix.Poll(fds, -1)
		s.mu.Lock()
		if n > 0 && fds[0].Revents != 0 {
			_, _ = unix.Read(s.interrupt[0], junk[:])
			n--
		}
		if n > 0 && s.armed {
			s.armed = false
			s.bell.ring()
		}
	}
}
