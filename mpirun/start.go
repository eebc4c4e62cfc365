package mpirun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"gompi/internal/cli"
	"gompi/internal/env"
	"gompi/mpirun/internal/allocation"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/remote"
)

const (
	// failureTime is how long the other hosts are waited for once one has
	// failed, so that all that fail are reported together: longer than ssh tries
	// to connect.
	failureTime = 12 * time.Second
	// progressTime is when we first say whom we are waiting for.
	progressTime = 2 * time.Second
)

// starter returns what starts agents on the hosts of a: on this machine as a
// process, elsewhere through srun, where Slurm has given them, or ssh, or what
// the user wants instead. Who says how long hosts may take to start expects that
// they are not up yet.
func starter(r cmdline.Reach, a *allocation.Allocation) (remote.Starter, error) {
	local := remote.Local{Stderr: os.Stderr}
	if a.SlurmJob != "" {
		srun, err := remote.NewSrun(a.SlurmJob, r.LaunchAgent)
		return remote.Nearest{Here: local, Away: srun, Own: a.Own}, err
	}
	flag, rsh := "-rsh", r.RSH
	if rsh == "" {
		flag, rsh = env.RSH, os.Getenv(env.RSH)
	}
	if rsh == "" {
		rsh, flag = cli.LoginVariables(os.Getenv)
	}
	if rsh == "" {
		rsh = "ssh"
	}
	command, err := cli.SplitCommand(rsh)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	ssh, err := remote.NewSSH(command, r.LaunchAgent, r.StartTimeout > 0)
	if err != nil {
		return nil, err
	}
	return remote.Nearest{Here: local, Away: ssh, Own: a.Own}, nil
}

// A beginning is the time until all agents have said what their hosts are made
// of, or why not.
type beginning struct {
	*job
	began   time.Time
	waiting int
	stop    context.CancelCauseFunc // ends what starts an agent
	late    *time.Timer             // nobody is waited for any more
}

// startAgents starts one agent on each host, all at once, and waits until each
// has said what its host is made of. Hosts that fail are reported together. It
// also returns, without error, when the job is to end.
func (j *job) startAgents(starter remote.Starter) error {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	limit := j.spec.Reach.Limit()
	b := &beginning{job: j, began: time.Now(), waiting: len(j.hosts), stop: stop, late: time.NewTimer(limit)}
	defer b.late.Stop()
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no agent after %v (-start-timeout)", limit))
	defer cancel()
	for i, h := range j.hosts {
		l := newLink(i, h.Name)
		j.links = append(j.links, l)
		go l.serve(limited, starter, h, j.events, j.done) // until the agent is gone or the job is done
	}
	progress := time.NewTicker(progressTime)
	defer progress.Stop()
	for b.waiting > 0 && j.cause == nil {
		select {
		case e := <-j.events:
			b.handle(e)
		case s := <-j.signals.c:
			j.signalled(s)
		case <-b.late.C:
			b.giveUp()
		case <-progress.C:
			j.notef("%d of %d agents are up, waiting for %s", len(j.links)-b.waiting, len(j.links), b.missing())
			progress.Reset(5 * progressTime)
		case <-j.timer:
			j.timeUp(" while waiting for " + b.missing())
		case <-j.looks:
			j.giveUpReader()
		}
	}
	return b.failures()
}

// handle takes note of how far a host has come.
func (b *beginning) handle(e event) {
	l := e.link
	switch {
	case e.err != nil && l.failed != nil:
		l.ended(e.err)
	case e.err != nil && l.agent == nil:
		l.gone = true
		b.fail(l, e.err)
	case e.err != nil:
		b.fail(l, errors.New("the agent "+l.ended(e.err)))
	case e.agent != nil:
		l.agent = e.agent
		b.verbosef("agent on %s: %s, process %d, after %v", l.host, l.agent.Via, l.agent.PID(), time.Since(b.began).Round(time.Millisecond))
	default:
		b.hear(l, e.m)
	}
}

// hear takes an agent's hello, and its GPUs, where they matter.
func (b *beginning) hear(l *link, m ctl.Message) {
	switch m := m.(type) {
	case *ctl.Hello:
		b.greeted(l, m)
	case *ctl.GPUs:
		b.equipped(l, m)
	default:
		b.note(l, m)
	}
}

func (b *beginning) greeted(l *link, hello *ctl.Hello) {
	switch {
	case l.hello != nil || l.failed != nil:
	case hello.Version != ctl.Version:
		b.fail(l, fmt.Errorf("its gompirun is version %s, want %s as here", hello.Version, ctl.Version))
	case b.wantsGPUs():
		l.hello, l.busy = hello, true
		l.Send(&ctl.FindGPUs{})
	default:
		l.hello = hello
		b.waiting--
	}
}

func (b *beginning) equipped(l *link, m *ctl.GPUs) {
	if !l.busy || l.failed != nil {
		return
	}
	gpus, err := readGPUs(m)
	if err != nil {
		b.fail(l, err)
		return
	}
	l.gpus, l.busy = gpus, false
	b.waiting--
	b.tellGPUs(l)
}

// fail notes why a host cannot be used. The others get a little time to say
// whether they can.
func (b *beginning) fail(l *link, err error) {
	if b.awaits(l) {
		b.waiting--
	}
	if len(b.links) > 1 && b.waiting > 0 && b.noneFailed() {
		b.late.Reset(min(failureTime, max(0, b.spec.Reach.Limit()-time.Since(b.began))))
	}
	l.failed = err
}

func (b *beginning) noneFailed() bool {
	for _, l := range b.links {
		if l.failed != nil {
			return false
		}
	}
	return true
}

// awaits reports whether a host has yet to say what it is made of.
func (b *beginning) awaits(l *link) bool { return l.failed == nil && (l.hello == nil || l.busy) }

// giveUp ends the hosts that have not answered.
func (b *beginning) giveUp() {
	b.stop(fmt.Errorf("no agent after %v", time.Since(b.began).Round(time.Second)))
	for _, l := range b.links {
		if l.agent != nil && b.awaits(l) {
			what := "said hello"
			if l.busy {
				what = "said what GPUs there are"
			}
			b.fail(l, fmt.Errorf("the agent has not %s after %v", what, time.Since(b.began).Round(time.Second)))
		}
	}
}

// missing names the hosts that are waited for.
func (b *beginning) missing() string {
	const most = 8
	var names []string
	for _, l := range b.links {
		if b.awaits(l) {
			names = append(names, l.host)
		}
	}
	if extra := len(names) - most; extra > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", extra))
	}
	return strings.Join(names, ", ")
}

// failures returns why hosts cannot be used, a line for each.
func (b *beginning) failures() error {
	var errs []error
	for _, l := range b.links {
		if l.failed != nil {
			errs = append(errs, fmt.Errorf("%s: %w", l.host, l.failed))
		}
	}
	return errors.Join(errs...)
}
