package agent

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// aside is what runs beside the loop because it may take long: the loop continues, so that the
// agent answers its launcher meanwhile, and ends when it is told to.
type aside struct {
	bell    int // an eventfd, which the loop watches
	running int // what has been begun and not finished; the loop's

	mu   sync.Mutex
	done []func() // what the loop is to do now
}

// openAside makes the loop hear of what has run aside.
func (a *agent) openAside() error {
	var err error
	if a.aside.bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	return a.watch(a.aside.bell, asideDone, 0, unix.EPOLLIN)
}

// doAside runs work on a goroutine, and then in the loop what work returns.
func (a *agent) doAside(work func() (then func())) {
	a.aside.running++
	go func() { // until work is done or the process ends
		then := work()
		a.aside.mu.Lock()
		a.aside.done = append(a.aside.done, then)
		a.aside.mu.Unlock()
		unix.Write(a.aside.bell, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // it fails only if it has rung very often
	}()
}

// finishAside does what is to be done after what has run aside.
func (a *agent) finishAside() {
	var count [8]byte
	unix.Read(a.aside.bell, count[:]) // before what is done is taken, so that no ring is lost
	a.aside.mu.Lock()
	done := a.aside.done
	a.aside.done = nil
	a.aside.mu.Unlock()
	a.aside.running -= len(done)
	for _, then := range done {
		then()
	}
}
