//go:build linux && !gompi_portable

package poll

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// batch is how many events one system call returns.
const batch = 64

// A Set is a set of descriptors and a doorbell. It implements
// transport.Parker.
//
// It is two epoll sets. The inner one holds the descriptors and the doorbell
// and answers Ready. The outer one, the gate, is registered with Go's netpoller
// once and for all, and holds the inner one only between Arm and Disarm: so a
// packet that arrives while the driver spins wakes nobody, and one goroutine
// waiting for the gate, as one waits for a file, is all that sleeping takes.
type Set struct {
	inner    int
	doorbell int // an eventfd
	outer    int
	gate     *os.File // owns outer
	events   [batch]unix.EpollEvent

	bell  bell
	armed atomic.Bool
	gone  chan struct{} // closed when the sentry has ended; nil if it never began
}

// New returns an empty Set. doorbell is an eventfd that also other processes
// may write to, which rings C as Wake does; the Set owns it from now on, also
// if New fails. If it is -1, the Set makes one.
func New(doorbell int) (*Set, error) {
	s := &Set{inner: -1, doorbell: doorbell, bell: newBell()}
	if err := s.open(); err != nil {
		s.Close()
		return nil, fmt.Errorf("cannot make a poll set: %w", err)
	}
	return s, nil
}

func (s *Set) open() (err error) {
	if s.doorbell < 0 {
		s.doorbell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	} else {
		unix.CloseOnExec(s.doorbell)
		err = unix.SetNonblock(s.doorbell, true)
	}
	if err != nil {
		return fmt.Errorf("doorbell: %w", err)
	}
	if s.inner, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	if err = s.Add(s.doorbell, bellKey, Read); err != nil {
		return err
	}
	if s.outer, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	// Only a file that is already non-blocking goes to the netpoller.
	err = unix.SetNonblock(s.outer, true)
	s.gate = os.NewFile(uintptr(s.outer), "poll set")
	if err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	conn, err := s.gate.SyscallConn()
	if err != nil {
		return err
	}
	s.gone = make(chan struct{})
	// The sentry: it ends when Close closes the gate, with an error that says
	// no more than that.
	go func() {
		defer close(s.gone)
		_ = conn.Read(s.look)
	}()
	return nil
}

// Close releases the Set and its doorbell, but not what was added. Nothing else
// is being called, but for Wake, which has no effect any more.
func (s *Set) Close() error {
	if s.gate != nil {
		s.gate.Close()
		s.gate = nil
		if s.gone != nil {
			<-s.gone
		}
	}
	for _, fd := range []*int{&s.inner, &s.doorbell} {
		if *fd >= 0 {
			unix.Close(*fd)
			*fd = -1
		}
	}
	return nil
}

// Add watches fd, which must be non-blocking. Events carry key, which need not
// be unique but must not be ^uint64(0).
func (s *Set) Add(fd int, key uint64, ev Interest) error {
	return s.control(unix.EPOLL_CTL_ADD, fd, key, ev)
}

// Mod changes what fd is watched for. With no Interest, only errors are
// reported.
func (s *Set) Mod(fd int, key uint64, ev Interest) error {
	return s.control(unix.EPOLL_CTL_MOD, fd, key, ev)
}

// Del stops watching fd. It must be called before fd is closed.
func (s *Set) Del(fd int) error {
	return s.control(unix.EPOLL_CTL_DEL, fd, 0, 0)
}

func (s *Set) control(op, fd int, key uint64, ev Interest) error {
	e := unix.EpollEvent{Fd: int32(uint32(key)), Pad: int32(uint32(key >> 32))}
	if ev&Read != 0 {
		e.Events |= unix.EPOLLIN | unix.EPOLLRDHUP
	}
	if ev&Write != 0 {
		e.Events |= unix.EPOLLOUT
	}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(s.inner, op, fd, &e))
}

// Ready stores what is ready now in buf and returns how many there are. It
// never blocks and allocates nothing; it costs one system call. It silences the
// doorbell.
func (s *Set) Ready(buf []Event) int {
	n := 0
	for i := range wait(s.inner, s.events[:min(len(buf), batch)]) {
		e := &s.events[i]
		key := uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32
		if key == bellKey {
			var count uint64
			unix.RawSyscall(unix.SYS_READ, uintptr(s.doorbell), uintptr(unsafe.Pointer(&count)), 8)
			continue
		}
		buf[n] = Event{Key: key, Ready: interest(e.Events)}
		n++
	}
	return n
}

func interest(events uint32) Interest {
	var r Interest
	if events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		r |= Read
	}
	if events&(unix.EPOLLOUT|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		r |= Write
	}
	return r
}

// wait asks for events without waiting for them. The raw system call is right
// here: it never blocks.
func wait(epoll int, events []unix.EpollEvent) int {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll),
		uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// Arm makes whatever becomes ready ring C, once, until Disarm. What is ready
// already counts.
func (s *Set) Arm() {
	s.armed.Store(true)
	e := unix.EpollEvent{Events: unix.EPOLLIN}
	if unix.EpollCtl(s.outer, unix.EPOLL_CTL_ADD, s.inner, &e) != nil {
		s.bell.ring() // no memory in the kernel: rather look in vain than sleep on
	}
}

// look is called by the sentry whenever the gate has stirred. It never says
// that it has seen enough, so the sentry's one Read lasts until Close.
func (s *Set) look(uintptr) bool {
	var one [1]unix.EpollEvent
	if s.armed.Load() && wait(s.inner, one[:]) > 0 && s.armed.Swap(false) {
		s.bell.ring()
	}
	return false
}

// Disarm undoes Arm.
func (s *Set) Disarm() {
	s.armed.Store(false)
	e := unix.EpollEvent{}
	_ = unix.EpollCtl(s.outer, unix.EPOLL_CTL_DEL, s.inner, &e) // fails if Arm has
}

// C delivers after Wake, and when something is ready between Arm and Disarm. It
// may deliver in vain.
func (s *Set) C() <-chan struct{} { return s.bell }

// Wake makes C deliver. It never blocks and costs no system call.
func (s *Set) Wake() { s.bell.ring() }
