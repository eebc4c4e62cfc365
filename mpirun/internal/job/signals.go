package job

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/failure"
)

// interruptTime is the time between INT and TERM after Ctrl-C: a Python program ends by INT with
// an exception, but by TERM abruptly.
const interruptTime = 2 * time.Second

// echoTime is the time after a request to end in which TERM and HUP count as the same request:
// timeout(1) sends its signal to gompirun and to its process group, systemd sends TERM and HUP, a
// scheduler sends TERM to the gompirun of each node.
const echoTime = 2 * time.Second

// signalled handles a signal. The first Ctrl-C, TERM or HUP ends the job in good order, the second
// kills its ranks, the third even the agents.
func (j *Job) signalled(s os.Signal) {
	sig, ok := s.(syscall.Signal)
	if !ok {
		return
	}
	switch sig {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP:
		if sig != syscall.SIGINT && j.end.interrupts > 0 && time.Since(j.end.interrupted) < echoTime {
			return
		}
		j.end.interrupts++
		j.end.interrupted = time.Now()
		j.interrupted(sig)
		j.setEndDeadline()
	case syscall.SIGQUIT:
		j.watch.Survey()
	case syscall.SIGTSTP:
		j.broadcast(&ctl.Signal{Number: int(sig)})
		for _, h := range j.hosts {
			h.Agent.Flush(100 * time.Millisecond)
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
		c := &failure.Cause{Status: 128 + int(sig), Text: fmt.Sprintf("ended by signal %d (%v)", sig, sig)}
		if sig == syscall.SIGINT {
			c.Text, j.end.interrupt = "interrupted", interruptTime
			j.notef("interrupted: ending the job; once more kills it")
		}
		j.endAsOrdered(c)
	case 2:
		j.killRanks()
	default:
		for _, h := range j.hosts {
			h.Agent.Kill()
		}
	}
}

// killed kills the ranks, without another signal before.
func (j *Job) killed() {
	j.end.interrupts = max(j.end.interrupts, 2) // the next one is the third
	j.end.interrupted = time.Now()
	j.killRanks()
	j.endAsOrdered(&failure.Cause{Status: 128 + int(syscall.SIGKILL), Text: "killed by the user"})
	j.setEndDeadline()
}

// endAsOrdered ends the job by the user's order: a job that is already ending is not started
// again.
func (j *Job) endAsOrdered(c *failure.Cause) {
	if j.end.order == nil {
		j.end.order = c
	}
	j.endFor(c)
}

// readSignals handles all pending signals.
func (j *Job) readSignals() {
	for {
		select {
		case s := <-j.signals:
			j.signalled(s)
		default:
			return
		}
	}
}

// killRanks makes the agents kill the ranks at once.
func (j *Job) killRanks() {
	j.end.kills, j.end.grace = true, 0
	j.broadcast(&ctl.Terminate{Text: "killed by the user"})
}
