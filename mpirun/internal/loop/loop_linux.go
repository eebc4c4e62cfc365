// Package loop handles events on one goroutine, in the kernel's order: descriptors that are
// ready, and the ends of background work.
package loop

import (
	"fmt"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"
)

// A Loop waits for descriptors. It is an epoll set, level-triggered. Its methods are for its
// goroutine, which waits and handles in turn.
type Loop struct {
	fd       int
	events   [128]unix.EpollEvent
	handlers map[int32]func(events uint32) // by descriptor

	bell    int // an eventfd: background work has ended
	running int // unfinished background work

	mu   sync.Mutex
	done []func() // follow-ups of background work, for the loop
}

// Open makes the loop, which watches only the ends of background work at first.
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

// Watch calls handle with the events of fd when one of events occurs. Closing fd ends the watch.
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

// Rehandle replaces the handler of fd, which is watched.
func (l *Loop) Rehandle(fd int, handle func(events uint32)) { l.handlers[int32(fd)] = handle }

// Forget ends the watch of fd.
func (l *Loop) Forget(fd int) {
	unix.EpollCtl(l.fd, unix.EPOLL_CTL_DEL, fd, nil) // fails only for a descriptor that is not watched
}

// Bell makes an eventfd and calls ring after each write to it (Ring), also from another
// goroutine.
func (l *Loop) Bell(ring func()) (int, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return -1, fmt.Errorf("eventfd: %w", err)
	}
	return fd, l.Watch(fd, unix.EPOLLIN, func(uint32) {
		var count [8]byte
		unix.Read(fd, count[:]) // before ring looks at the cause, so that no write is lost
		ring()
	})
}

// OnSignal calls handle after signals of a kind, until the process ends.
func (l *Loop) OnSignal(sig os.Signal, handle func()) error {
	bell, err := l.Bell(handle)
	if err != nil {
		return err
	}
	come := make(chan os.Signal, 1)
	signal.Notify(come, sig)
	go func() { // until the process ends
		for range come {
			Ring(bell)
		}
	}()
	return nil
}

// Ring rings a bell.
func Ring(bell int) {
	unix.Write(bell, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // fails only after very many rings
}

// Wait blocks until a descriptor is ready, at most limit milliseconds if limit is not negative,
// and returns the events in the order in which they happened.
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

// Handle handles the events of Wait.
func (l *Loop) Handle(events []unix.EpollEvent) {
	for _, e := range events {
		l.handlers[e.Fd](e.Events)
	}
}

// Aside runs slow work on a goroutine in the background, and then its result, a function, in the
// loop.
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

// Running returns the number of unfinished calls of Aside.
func (l *Loop) Running() int { return l.running }

// finishAside runs the follow-ups of background work.
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

// Write writes data to fd, as much as that takes, and returns the rest.
func Write(fd int, data []byte) (rest []byte, err error) {
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		switch {
		case err == nil:
			data = data[n:]
		case err == unix.EAGAIN:
			return data, nil
		case err != unix.EINTR:
			return data, err
		}
	}
	return nil, nil
}

// Pipe returns a pipe whose end number ours does not block. The other end must block, as programs
// expect of their standard streams.
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
