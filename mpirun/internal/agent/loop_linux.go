package agent

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// A source is what a descriptor of the loop belongs to.
type source int32

const (
	control      source = iota // orders from the launcher
	reports                    // the way to the launcher, when it is full
	listener                   // ranks whose descriptors were closed
	caller                     // a connection to it that has not named its rank
	bootEnd                    // a rank's boot socket
	pmiEnd                     // a rank's PMI socket
	stdout                     // a rank's output
	stderr                     //
	stdin                      // a rank's input, when it is full
	exitEvent                  // a rank's process
	childEnded                 // a child of this process
	asideDone                  // what has run aside
	watchdogGone               // the pipe to the watchdog
)

// A loop waits for descriptors. It is an epoll set, level-triggered.
type loop struct {
	fd     int
	events [128]unix.EpollEvent
}

func (l *loop) open() error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	l.fd = fd
	return nil
}

// watch adds fd. index says which rank or caller it belongs to.
func (l *loop) watch(fd int, s source, index int, events uint32) error {
	e := unix.EpollEvent{Events: events, Fd: int32(s), Pad: int32(index)}
	if err := unix.EpollCtl(l.fd, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fmt.Errorf("epoll: add descriptor %d: %w", fd, err)
	}
	return nil
}

// change sets the events of fd, which is watched.
func (l *loop) change(fd int, s source, index int, events uint32) {
	e := unix.EpollEvent{Events: events, Fd: int32(s), Pad: int32(index)}
	unix.EpollCtl(l.fd, unix.EPOLL_CTL_MOD, fd, &e) // fails only for a descriptor that is not watched
}

func (l *loop) forget(fd int) {
	unix.EpollCtl(l.fd, unix.EPOLL_CTL_DEL, fd, nil) // fails only for a descriptor that is not watched
}

// wait blocks until something is ready, at most limit milliseconds if that is
// not negative, and returns the events in the order in which they happened.
func (l *loop) wait(limit int) ([]unix.EpollEvent, error) {
	n, err := unix.EpollWait(l.fd, l.events[:], limit)
	if err == unix.EINTR {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	return l.events[:n], nil
}
