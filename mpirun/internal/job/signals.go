package job

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"gompi/mpirun/internal/ctl"
)

// interruptTime is how long ranks have to end after Ctrl-C, before they get TERM: a program in
// Python ends by INT as by an exception, and not at all well by TERM.
const interruptTime = 2 * time.Second

// signalled handles a signal. The first Ctrl-C, TERM or HUP ends the job in good order, the second
// kills its ranks, the third even the agents.
func (j *Job) signalled(s os.Signal) {
	sig, ok := s.(syscall.Signal)
	if !ok {
		return
	}
	switch sig {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP:
		j.end.interrupts++
		j.interrupted(sig)
		j.setEndDeadline()
	case syscall.SIGQUIT:
		j.watch.Survey()
	case syscall.SIGTSTP:
		j.broadcast(&ctl.Signal{Number: int(sig)})
		for _, h := range j.hosts {
			h.agent.Flush(100 * time.Millisecond)
		}
		j.system.Stop()
		j.heart.last = time.Now() // the user knows
	default:
		j.broadcast(&ctl.Signal{Number: int(sig)})
	}
}

func (j *Job) interrupted(sig syscall.Signal) {
	switch j.end.interrupts {
	case 1:
		c := &cause{status: 128 + int(sig), text: fmt.Sprintf("ended by signal %d (%v)", sig, sig)}
		if sig == syscall.SIGINT {
			c.text, j.end.interrupt = "interrupted", interruptTime
			j.notef("interrupted: ending the job; once more kills it")
		}
		j.endFor(c)
	case 2:
		j.end.grace = 0
		j.broadcast(&ctl.Terminate{Text: "killed by the user"})
	default:
		for _, h := range j.hosts {
			h.agent.Kill()
		}
	}
}
