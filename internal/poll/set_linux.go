//go:build linux && !gompi_portable

package poll

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// batch is how many events one system call returns.
const batch = 64

// A Set is a set of descriptors and a doorbell. It implements transport.Parker.
//
// It is two epoll sets. The inner one holds the descriptors and the doorbell; Ready asks it. The
// outer one is registered with Go's netpoller, once. It holds the inner one and the wakers only
// between Arm and Disarm. So a packet that arrives while the driver spins wakes no goroutine. While
// the driver sleeps, one goroutine, the watcher, waits for the outer set as for any file.
type Set struct {
	inner    int
	doorbell int // an eventfd
	outer    int
	file     *os.File // owns outer
	wakers   []int
	events   [batch]unix.EpollEvent

	bell        bell
	armed       atomic.Bool
	sleeping    atomic.Int32  // goroutines in Sleep
	interrupted bool          // Interrupt was called, and not EndInterrupt
	closing     sync.Mutex    // held while the doorbell is rung from inside, or closed
	gone        chan struct{} // closed when the watcher has ended; nil if it never began
}

// New returns an empty Set. doorbell is an eventfd to which other processes may write, too: a
// write makes C deliver, as Wake does. The Set owns it, also if New fails. If doorbell is -1,
// the Set makes an eventfd.
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
	// Edge-triggered: each write to the doorbell is an event, and it need not be reset.
	if err = s.watch(unix.EPOLL_CTL_ADD, s.doorbell, bellKey, unix.EPOLLIN|unix.EPOLLET); err != nil {
		return err
	}
	if s.outer, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	// Only a file that is already non-blocking goes to the netpoller.
	err = unix.SetNonblock(s.outer, true)
	s.file = os.NewFile(uintptr(s.outer), "poll set")
	if err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	conn, err := s.file.SyscallConn()
	if err != nil {
		return err
	}
	s.gone = make(chan struct{})
	// The watcher ends when Close closes the file: that is the only error of Read.
	go func() {
		defer close(s.gone)
		_ = conn.Read(s.look)
	}()
	return nil
}

// Close releases the Set and its doorbell, but not the descriptors that were added. No other
// method may run at the same time, except Wake, which has no effect any more.
func (s *Set) Close() error {
	if s.file != nil {
		s.file.Close()
		s.file = nil
		if s.gone != nil {
			<-s.gone
		}
	}
	s.closing.Lock()
	defer s.closing.Unlock()
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
	var events uint32
	if ev&Read != 0 {
		events |= unix.EPOLLIN | unix.EPOLLRDHUP
	}
	if ev&Write != 0 {
		events |= unix.EPOLLOUT
	}
	return s.watch(op, fd, key, events)
}

func (s *Set) watch(op, fd int, key uint64, events uint32) error {
	e := unix.EpollEvent{Events: events, Fd: int32(uint32(key)), Pad: int32(uint32(key >> 32))}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(s.inner, op, fd, &e))
}

// AddWaker makes C deliver also when fd is readable between Arm and Disarm. Ready does not report
// fd. fd may be an epoll set that holds one more: the kernel lets five be nested, of which the
// netpoller's and the outer one are two.
func (s *Set) AddWaker(fd int) error {
	if err := s.wakeBy(fd); err != nil {
		return os.NewSyscallError("epoll_ctl", err)
	}
	s.notBy(fd)
	s.wakers = append(s.wakers, fd)
	return nil
}

// DelWaker undoes AddWaker. It must be called before fd is closed.
func (s *Set) DelWaker(fd int) {
	s.notBy(fd)
	s.wakers = slices.DeleteFunc(s.wakers, func(w int) bool { return w == fd })
}

// wakeBy adds fd to the outer set. The kernel reports it at once if it is ready, which it does not
// when an fd that was ready before is only changed.
func (s *Set) wakeBy(fd int) error {
	e := unix.EpollEvent{Events: unix.EPOLLIN}
	return unix.EpollCtl(s.outer, unix.EPOLL_CTL_ADD, fd, &e)
}

// notBy undoes wakeBy. It fails if that has.
func (s *Set) notBy(fd int) {
	_ = unix.EpollCtl(s.outer, unix.EPOLL_CTL_DEL, fd, &unix.EpollEvent{})
}

// Ready stores the events of descriptors that are ready in buf and returns their number. It
// never blocks and allocates nothing; it costs one system call.
func (s *Set) Ready(buf []Event) int {
	n := 0
	for i := range readyNow(s.inner, s.events[:min(len(buf), batch)]) {
		e := &s.events[i]
		key := uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32
		if key == bellKey {
			if s.interrupted {
				Ring(s.doorbell) // for the thread that is to wake, and has not yet
			}
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

// readyNow returns how many events are ready, and stores them. It uses a raw system call, which
// keeps the P of the Go scheduler: with a timeout of 0 the call never blocks.
func readyNow(epoll int, events []unix.EpollEvent) int {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll),
		uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// Arm makes C deliver, once, when a descriptor is ready or becomes so before Disarm.
func (s *Set) Arm() {
	s.armed.Store(true)
	err := s.wakeBy(s.inner)
	for _, fd := range s.wakers {
		err = cmp.Or(err, s.wakeBy(fd))
	}
	if err != nil {
		s.bell.ring() // the kernel has no memory: better a wake-up in vain than none
	}
}

// look is called by the watcher's Read whenever the outer set becomes ready. It always returns
// false, so that this one Read lasts until Close.
func (s *Set) look(uintptr) bool {
	var one [1]unix.EpollEvent
	if s.armed.Load() && readyNow(s.outer, one[:]) > 0 && s.armed.Swap(false) {
		s.bell.ring()
	}
	return false
}

// Disarm undoes Arm.
func (s *Set) Disarm() {
	s.armed.Store(false)
	s.notBy(s.inner)
	for _, fd := range s.wakers {
		s.notBy(fd)
	}
}

// C delivers after Wake, and when a descriptor is ready between Arm and Disarm. It may deliver
// when nothing is ready.
func (s *Set) C() <-chan struct{} { return s.bell }

// Wake makes C deliver, and ends Sleep. It never blocks, and costs no system call unless a
// goroutine is in Sleep.
func (s *Set) Wake() {
	s.bell.ring()
	if s.sleeping.Load() > 0 {
		s.ring()
	}
}

// Sleep blocks the thread of its caller until a descriptor is ready, wakers included, Wake or
// Interrupt is called, or d is over. It reports whether something ended it before d was over. Other
// goroutines of the process run meanwhile: the Go scheduler takes the P back if it needs it. What
// the descriptors are ready for Ready reports afterwards. Several goroutines may sleep; a ring of
// the doorbell may end the sleep of one only. It needs no Arm, wakes in a fifth of the time that a
// goroutine takes that receives from C, and allocates nothing.
func (s *Set) Sleep(d time.Duration) (rang bool) {
	// Wake rings first and then looks for sleepers, and here it is the other way round, so one of
	// the two sees the other.
	s.sleeping.Add(1)
	defer s.sleeping.Add(-1)
	select {
	case <-s.bell:
		return true
	default:
	}
	return s.wait(d)
}

// Interrupt ends the Sleep of one goroutine, or the next one. Until EndInterrupt, Ready does not
// take that away: it may be called before the thread runs that is to wake. Those who call
// Interrupt, EndInterrupt and Ready hold one lock.
func (s *Set) Interrupt() {
	s.interrupted = true
	s.ring()
}

// EndInterrupt is called when no goroutine that was interrupted sleeps any more.
func (s *Set) EndInterrupt() { s.interrupted = false }

// ring rings the doorbell, unless it is closed: then its number may be another's.
func (s *Set) ring() {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.doorbell >= 0 {
		Ring(s.doorbell)
	}
}

// noPwait2 is set where the kernel, before Linux 5.11, or a sandbox has no epoll_pwait2.
var noPwait2 atomic.Bool

// wait blocks until something is ready, or a signal comes, for at most d. Where it cannot ask the
// inner set itself, or there are wakers, which are not in it, it polls them.
func (s *Set) wait(d time.Duration) (ended bool) {
	t := unix.NsecToTimespec(int64(d))
	if len(s.wakers) == 0 && !noPwait2.Load() {
		var one unix.EpollEvent
		n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(s.inner),
			uintptr(unsafe.Pointer(&one)), 1, uintptr(unsafe.Pointer(&t)), 0, 0)
		if errno == 0 || errno == unix.EINTR {
			return errno != 0 || n > 0
		}
		noPwait2.Store(true)
	}
	var some [4]unix.PollFd
	fds := append(some[:0], unix.PollFd{Fd: int32(s.inner), Events: unix.POLLIN})
	for _, fd := range s.wakers {
		fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	n, err := unix.Ppoll(fds, &t, nil)
	return n > 0 || err == unix.EINTR
}
