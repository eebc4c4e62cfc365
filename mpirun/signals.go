package mpirun

import (
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
)

// Signals that end the job, and signals that are forwarded to the ranks. QUIT asks for the ranks'
// calls.
var (
	endJob   = [...]os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
	handedOn = [...]os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH, syscall.SIGCONT,
		syscall.SIGTSTP, syscall.SIGQUIT}
)

// A catcher takes the signals of the job. It knows whether this process still has to stop: when
// the job handles a TSTP, the CONT that ends the stop may have come already.
type catcher struct {
	signals chan os.Signal
	over    atomic.Pointer[int] // status of the job, which is over; nil while it runs
	mark    *mark

	mu      sync.Mutex
	stopped chan struct{} // closed by CONT; nil without a later TSTP
}

// catch begins to catch the signals of the job, except signals that were ignored when gompirun
// started: nohup and shells without job control rely on that. The first process of a container
// does not catch TSTP, because such a process cannot stop itself.
func catch() *catcher {
	c := &catcher{signals: make(chan os.Signal, 16), mark: newMark()}
	c.mark.set()
	// Go's runtime drops a signal if the channel is full. For these two a waiting signal is as good.
	stops, continues, others := make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan os.Signal, 16)
	for _, list := range [][]os.Signal{endJob[:], handedOn[:]} {
		for _, sig := range list {
			switch {
			case signal.Ignored(sig):
			case sig == syscall.SIGCONT:
				signal.Notify(continues, sig)
			case sig != syscall.SIGTSTP:
				signal.Notify(others, sig)
			case os.Getpid() != 1:
				signal.Notify(stops, sig)
			}
		}
	}
	go func() { // until the process ends
		for sig := range others {
			if status := c.over.Load(); status != nil && slices.Contains(endJob[:], sig) {
				os.Exit(*status)
			}
			c.deliver(sig)
		}
	}()
	go c.stopAndContinue(stops, continues)
	return c
}

func (c *catcher) deliver(sig os.Signal) {
	select {
	case c.signals <- sig:
	default: // like the kernel while a signal is pending
	}
}

// release makes signals that end the job end this process, with the status of the finished job:
// the rest of the work may wait for the reader of its output.
func (c *catcher) release(status int) { c.over.Store(&status) }

// stopAndContinue takes TSTP and CONT until the process ends. Go's runtime does not keep their
// order, which does not matter: the mark is set again after each CONT, and a TSTP that may have
// come earlier is ignored. So each counted TSTP has come after the mark, and if the mark exists
// when the process has to stop, no CONT has come since that TSTP.
func (c *catcher) stopAndContinue(stops, continues chan os.Signal) {
	for {
		select {
		case sig := <-stops:
			c.mu.Lock()
			if c.stopped == nil {
				c.stopped = make(chan struct{})
			}
			c.mu.Unlock()
			c.deliver(sig)
		case sig := <-continues:
			c.mu.Lock()
			if c.stopped != nil {
				close(c.stopped)
				c.stopped = nil
			}
			c.mu.Unlock()
			c.deliver(sig)
			c.mark.set()
			awaitHandlers(syscall.SIGTSTP)
			select {
			case <-stops: // the job continues: a job stopped by mistake would wait forever
			default:
			}
		}
	}
}

// stop stops this process until CONT, as TSTP asks, unless CONT has come since.
func (c *catcher) stop() {
	c.mu.Lock()
	continued := c.stopped
	c.mu.Unlock()
	if continued == nil {
		return
	}
	c.mark.stop(continued)
	<-continued
}
