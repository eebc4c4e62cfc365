// Package loop handles events on one goroutine, in the order in which the kernel reports them:
// descriptors that are ready, and the ends of work that ran aside.
package loop

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// A Loop waits for descriptors. It is an epoll set, level-triggered. All of its methods are for its
// goroutine, which waits and handles in turn.
type Loop struct {
	fd       int
	events   [128]unix.EpollEvent
	handlers map[int32]func(events uint32) // by descriptor

	bell    int // an eventfd: something has run aside
	running int // work that was begun aside and is not finished

	mu   sync.Mutex
	done []func() // what the loop is to do after work aside
}

// Open makes the loop, which watches nothing yet but for the ends of work aside.
func (l *Loop) Open() error {
	var err error
	if l.fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	l.handlers = map[int32]func(uint32){}
	l.bell, err = l.Bell(l.finishAside)
	return err
}

// Close closes the loop's own descriptors.
func (l *Loop) Close() {
	unix.Close(l.bell)
	unix.Close(l.fd)
}

// Watch has handle called with the events of fd when one of events has come. Closing fd ends that.
func (l *Loop) Watch(fd int, events uint32, handle func(events uint32)) error {
	e := unix.EpollEvent{Events: events, Fd: int32(fd)}
	if err := unix.EpollCtl(l.fd, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fmt.Errorf("epoll: add descriptor %d: %w", fd, err)
	}
	l.handlers[e.Fd] = handle
	return nil
}

// Change sets the events of fd, which is watched.
func (l *Loop) Change(fd int, events uint32) {
	e := unix.EpollEvent{Events: events, Fd: int32(fd)}
	unix.EpollCtl(l.fd, unix.EPOLL_CTL_MOD, fd, &e) // fails only for a descriptor that is not watched
}

// Rehandle has the events of fd, which is watched, handled by handle.
func (l *Loop) Rehandle(fd int, handle func(events uint32)) { l.handlers[int32(fd)] = handle }

// Forget ends the watch of fd.
func (l *Loop) Forget(fd int) {
	unix.EpollCtl(l.fd, unix.EPOLL_CTL_DEL, fd, nil) // fails only for a descriptor that is not watched
}

// Bell makes an eventfd that has ring called when it is written to (Ring), also from another
// goroutine.
func (l *Loop) Bell(ring func()) (int, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return -1, fmt.Errorf("eventfd: %w", err)
	}
	return fd, l.Watch(fd, unix.EPOLLIN, func(uint32) {
		var count [8]byte
		unix.Read(fd, count[:]) // before what it stands for is looked at, so that no ring is lost
		ring()
	})
}

// Ring rings a bell.
func Ring(bell int) {
	unix.Write(bell, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // fails only if it has been rung very often
}

// Wait blocks until something is ready, at most limit milliseconds if that is not negative, and
// returns the events in the order in which they happened.
func (l *Loop) Wait(limit int) ([]unix.EpollEvent, error) {
	n, err := unix.EpollWait(l.fd, l.events[:], limit)
	if err == unix.EINTR {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	return l.events[:n], nil
}

// Handle handles events that Wait has returned.
func (l *Loop) Handle(events []unix.EpollEvent) {
	for _, e := range events {
		l.handlers[e.Fd](e.Events)
	}
}

// Aside runs work, which may take long, on a goroutine, and then in the loop what work returns: the
// loop continues meanwhile.
func (l *Loop) Aside(work func() (then func())) {
	l.running++
	go func() { // until work is done or the process ends
		then := work()
		l.mu.Lock()
		l.done = append(l.done, then)
		l.mu.Unlock()
		Ring(l.bell)
	}()
}

// Running returns how much runs aside.
func (l *Loop) Running() int { return l.running }

// finishAside does what is to be done after work aside.
func (l *Loop) finishAside() {
	l.mu.Lock()
	done := l.done
	l.done = nil
	l.mu.Unlock()
	l.running -= len(done)
	for _, then := range done {
		then()
	}
}

// Pipe returns a pipe whose end number ours does not block. The other end must block: programs
// expect that of their standard streams.
func Pipe(ours int) ([2]int, error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return pipe, fmt.Errorf("pipe: %w", err)
	}
	if err := unix.SetNonblock(pipe[ours], true); err != nil {
		return pipe, fmt.Errorf("pipe: %w", err)
	}
	return pipe, nil
}
