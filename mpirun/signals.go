package mpirun

import (
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
)

// Signals that end the job, and signals that are forwarded to the ranks. QUIT asks what the ranks
// are doing.
var (
	endJob   = [...]os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
	handedOn = [...]os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH, syscall.SIGCONT,
		syscall.SIGTSTP, syscall.SIGQUIT}
)

// A catcher takes the signals of the job. It knows whether this process is to be stopped: when the
// job handles a TSTP, the CONT that ends it may have come already.
type catcher struct {
	signals chan os.Signal
	over    atomic.Pointer[int] // the status of the job, which is over; nil while it runs
	mark    *mark

	mu      sync.Mutex
	stopped chan struct{} // closed by CONT; nil while no TSTP has come since
}

// catch begins to catch the signals of the job, except those that were ignored when gompirun
// started: nohup and shells without job control rely on that. The first process of a container does
// not catch TSTP: it cannot stop itself.
func catch() *catcher {
	c := &catcher{signals: make(chan os.Signal, 16), mark: newMark()}
	c.mark.set()
	// Go's runtime drops a signal if the channel is full: of these two one that waits is as good.
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
	default: // as the kernel does when one is waiting already
	}
}

// release has signals that would end the job end this process, with the status of the job, which is
// over: what is left to do may wait for the reader of its output.
func (c *catcher) release(status int) { c.over.Store(&status) }

// stopAndContinue takes TSTP and CONT until the process ends. Go's runtime does not keep their
// order. It does not matter: the mark is set again behind each CONT, and a TSTP that may have come
// before that counts for nothing. So each TSTP that counts has come behind the mark, and where
// there is a mark when the process is to stop, no CONT has come since that TSTP.
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
			case <-stops: // the job continues: one that is stopped by mistake would wait for ever
			default:
			}
		}
	}
}

// stop stops this process, as TSTP asks, until it is continued; not if it has been continued since.
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
