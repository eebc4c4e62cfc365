package mpirun

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"gompi/mpirun/internal/ctl"
)

// signals are those that reach gompirun and mean its job.
type signals struct{ c chan os.Signal }

// Signals that end the job, and signals that are handed on to the ranks; QUIT
// asks what they are doing.
var (
	endJob   = [...]os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
	handedOn = [...]os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH, syscall.SIGCONT,
		syscall.SIGTSTP, syscall.SIGQUIT}
)

// catch starts to catch signals, but for those that were ignored when gompirun
// started: nohup and shells without job control want that. And the first process of a
// container cannot stop itself, nor would anybody there continue it.
func catch() *signals {
	s := &signals{make(chan os.Signal, 16)}
	for _, list := range [][]os.Signal{endJob[:], handedOn[:]} {
		for _, sig := range list {
			if !signal.Ignored(sig) && (sig != syscall.SIGTSTP || os.Getpid() != 1) {
				signal.Notify(s.c, sig)
			}
		}
	}
	return s
}

func (s *signals) release() { signal.Stop(s.c) }

// signalled does what a signal asks for. The first Ctrl-C, TERM or HUP ends the
// job in good order, the second kills its ranks, the third even the agents.
func (j *job) signalled(s os.Signal) {
	sig, ok := s.(syscall.Signal)
	if !ok {
		return
	}
	switch sig {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP:
		j.interrupts++
		j.hurried = true
		j.interrupted(sig)
	case syscall.SIGQUIT:
		j.watch.Survey()
	case syscall.SIGTSTP:
		j.broadcast(&ctl.Signal{Number: int(sig)})
		for _, l := range j.links {
			l.flush(100 * time.Millisecond)
		}
		resume := j.meeting.pause()
		stop()
		resume()
		for _, l := range j.links {
			l.heard.Store(true)
		}
	default:
		j.broadcast(&ctl.Signal{Number: int(sig)})
	}
}

// stop stops this process, as the terminal asked, until it is continued. A thread may
// run on for a while after it has sent the signal that stops all of them.
func stop() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
	<-continued
}

func (j *job) interrupted(sig syscall.Signal) {
	switch j.interrupts {
	case 1:
		c := &cause{status: 128 + int(sig), text: fmt.Sprintf("ended by signal %d (%v)", sig, sig)}
		if sig == syscall.SIGINT {
			c.text = "interrupted"
			j.notef("interrupted: ending the job; once more kills it")
		}
		j.end(c)
	case 2:
		j.broadcast(&ctl.Terminate{Text: "killed by the user"})
	default:
		for _, l := range j.links {
			l.kill()
		}
	}
}
