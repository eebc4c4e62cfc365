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

// batch is the largest number of events of one system call.
const batch = 64

// A Set is a set of descriptors and a doorbell, and implements transport.Parker.
//
// The Set has two epoll sets. The inner one holds the descriptors and the doorbell, for Ready. The
// outer one is registered with Go's netpoller, once. The outer one holds the inner set and the
// wakers only between Arm and Disarm, so a packet that arrives while the driver spins wakes no
// goroutine. While the driver sleeps, a goroutine, the watcher, waits for the outer set as for any
// file.
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
	interrupted bool          // between Interrupt and EndInterrupt
	closing     sync.Mutex    // held while this process rings or closes the doorbell
	gone        chan struct{} // closed when the watcher has ended; nil if no watcher began
}

// New returns an empty Set. doorbell is an eventfd to which other processes may write, too: a write
// makes C deliver, as Wake does. The Set owns doorbell, also if New fails. If doorbell is -1, the
// Set creates an eventfd.
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
	// Edge-triggered: each write to the doorbell is an event, without a reset.
	if err = s.watch(unix.EPOLL_CTL_ADD, s.doorbell, bellKey, unix.EPOLLIN|unix.EPOLLET); err != nil {
		return err
	}
	if s.outer, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	// os.NewFile registers only a non-blocking file with the netpoller.
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
	// The watcher ends when Close closes the file: Read has no other error.
	go func() {
		defer close(s.gone)
		_ = conn.Read(s.look)
	}()
	return nil
}

// Close releases the Set and its doorbell, but not the added descriptors. No other method may run
// at the same time, except Wake, which then has no effect.
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

// Add watches fd, which must be non-blocking. Events carry key, which need not be unique but must
// not be ^uint64(0).
func (s *Set) Add(fd int, key uint64, ev Interest) error {
	return s.control(unix.EPOLL_CTL_ADD, fd, key, ev)
}

// Mod changes the Interest in fd. With no Interest, only errors are reported.
func (s *Set) Mod(fd int, key uint64, ev Interest) error {
	return s.control(unix.EPOLL_CTL_MOD, fd, key, ev)
}

// Del stops watching fd, and must be called before fd is closed.
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
// fd. fd may be an epoll set that contains another: the kernel permits five nested sets, including
// the netpoller's and the outer one.
func (s *Set) AddWaker(fd int) error {
	if err := s.wakeBy(fd); err != nil {
		return os.NewSyscallError("epoll_ctl", err)
	}
	s.notBy(fd)
	s.wakers = append(s.wakers, fd)
	return nil
}

// DelWaker undoes AddWaker, and must be called before fd is closed.
func (s *Set) DelWaker(fd int) {
	s.notBy(fd)
	s.wakers = slices.DeleteFunc(s.wakers, func(w int) bool { return w == fd })
}

// wakeBy adds fd to the outer set. An add reports an fd that is already ready, unlike a
// modification.
func (s *Set) wakeBy(fd int) error {
	e := unix.EpollEvent{Events: unix.EPOLLIN}
	return unix.EpollCtl(s.outer, unix.EPOLL_CTL_ADD, fd, &e)
}

// notBy undoes wakeBy, and fails if wakeBy failed.
func (s *Set) notBy(fd int) {
	_ = unix.EpollCtl(s.outer, unix.EPOLL_CTL_DEL, fd, &unix.EpollEvent{})
}

// Ready stores the events of ready descriptors in buf and returns their number. Ready never blocks,
// allocates nothing, and costs one system call.
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

// readyNow stores the ready events and returns their number. A raw system call keeps the P of the
// Go scheduler: with a timeout of 0 the call never blocks.
func readyNow(epoll int, events []unix.EpollEvent) int {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll),
		uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// Arm makes C deliver, once, when a descriptor is ready or becomes ready before Disarm.
func (s *Set) Arm() {
	s.armed.Store(true)
	err := s.wakeBy(s.inner)
	for _, fd := range s.wakers {
		err = cmp.Or(err, s.wakeBy(fd))
	}
	if err != nil {
		s.bell.ring() // the kernel lacks memory: a wake-up in vain is better than none
	}
}

// look is called by the watcher's Read whenever the outer set becomes ready. The result is always
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

// C delivers after Wake, and when a descriptor is ready between Arm and Disarm. A delivery may be
// spurious.
func (s *Set) C() <-chan struct{} { return s.bell }

// Wake makes C deliver, and ends Sleep. Wake never blocks, and needs no system call unless a
// goroutine is in Sleep.
func (s *Set) Wake() {
	s.bell.ring()
	if s.sleeping.Load() > 0 {
		s.ring()
	}
}

// Sleep blocks the thread of its caller until a descriptor is ready, wakers included, Wake or
// Interrupt is called, or d is over. The result is false if d is over. Other goroutines of the
// process run meanwhile: the Go scheduler takes the P back when needed. Ready then returns the
// ready descriptors. Several goroutines may sleep; a ring of the doorbell may end only one sleep.
// Sleep needs no Arm, allocates nothing, and wakes in a fifth of the time that a receive from C
// takes.
func (s *Set) Sleep(d time.Duration) (rang bool) {
	// Wake rings first and then looks for sleepers. The order here is the reverse, so one of the
	// two sees the other.
	s.sleeping.Add(1)
	defer s.sleeping.Add(-1)
	select {
	case <-s.bell:
		return true
	default:
	}
	return s.wait(d)
}

// Interrupt ends the Sleep of one goroutine, or the next Sleep. Until EndInterrupt, a Ready that
// takes the ring restores the ring: Ready may run before the woken thread. The callers of
// Interrupt, EndInterrupt and Ready hold the same lock.
func (s *Set) Interrupt() {
	s.interrupted = true
	s.ring()
}

// EndInterrupt is called when no interrupted goroutine sleeps any more.
func (s *Set) EndInterrupt() { s.interrupted = false }

// ring rings the doorbell, unless closed: then the doorbell's number may be another file's.
func (s *Set) ring() {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.doorbell >= 0 {
		Ring(s.doorbell)
	}
}

// noPwait2 is set if the kernel, before Linux 5.11, or a sandbox has no epoll_pwait2.
var noPwait2 atomic.Bool

// wait blocks until a descriptor is ready, or a signal comes, for at most d. Without epoll_pwait2,
// or with wakers, which are not in the inner set, wait uses ppoll.
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
