package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/link"
)

const (
	// FailureTime bounds the job's wait for the other hosts after the first failure, for a report
	// of all failures together. ssh gives up connecting earlier.
	FailureTime = 12 * time.Second
	// progressTime is the time until the user is first notified of missing hosts.
	progressTime = 5 * time.Second
)

// A beginning is the time until all agents have sent the facts of their hosts, or have failed.
type beginning struct {
	job     *Job
	began   time.Time
	waiting int
	stop    context.CancelCauseFunc // ends the starts of agents
	late    *time.Timer             // ends the wait for agents
}

// startAgents starts one agent on each host, all at once, and waits for the facts of all hosts.
// Failing hosts are reported together. startAgents also returns, without error, when the job is
// about to end.
func (j *Job) startAgents() error {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	limit := j.spec.Reach.Limit()
	b := &beginning{job: j, began: time.Now(), waiting: len(j.Hosts), stop: stop, late: time.NewTimer(limit)}
	defer b.late.Stop()
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no agent after %v (-start-timeout)", limit))
	defer cancel()
	agents, send := j.system.Connect(limited, j.Hosts, j.events, j.done)
	j.send = send
	for i, h := range j.Hosts {
		j.hosts = append(j.hosts, &host{index: i, name: h.Name, agent: agents[i]})
	}
	progress := time.NewTicker(progressTime)
	defer progress.Stop()
	for b.waiting > 0 && j.end.cause == nil {
		select {
		case e := <-j.events:
			b.handle(e)
		case s := <-j.signals:
			j.signalled(s)
		case q := <-j.system.Questions:
			j.askedFor(q)
		case <-b.late.C:
			b.giveUp()
		case <-progress.C:
			j.notef("%d of %d agents are up, waiting for %s", len(j.hosts)-b.waiting, len(j.hosts), b.missing())
			progress.Reset(2 * progressTime)
		case <-j.timer:
			j.timeUp(" while waiting for " + b.missing())
		case <-j.end.looks:
			j.giveUpReader()
		}
	}
	return b.failures()
}

// handle handles an event of a host.
func (b *beginning) handle(e link.Event) {
	h := b.job.hosts[e.Host]
	switch {
	case e.Err != nil && h.failed != nil:
		h.ended(e.Err)
	case e.Err != nil && h.started == nil:
		h.gone = true
		b.fail(h, e.Err)
	case e.Err != nil:
		b.fail(h, errors.New("the agent "+h.ended(e.Err)))
	case e.Started != nil:
		h.started = e.Started
		b.job.verbosef("agent on %s: %s%s, after %v", h.name, b.job.via(h), h.started.Process(),
			time.Since(b.began).Round(time.Millisecond))
	default:
		b.message(h, e.Message)
	}
}

// message handles an agent's hello, and its GPUs if they matter.
func (b *beginning) message(h *host, m ctl.Message) {
	switch m := m.(type) {
	case *ctl.Hello:
		b.greeted(h, m)
	case *ctl.GPUs:
		b.equipped(h, m)
	default:
		b.job.note(h, m)
	}
}

func (b *beginning) greeted(h *host, hello *ctl.Hello) {
	switch {
	case h.hello != nil || h.failed != nil:
	case hello.Version != ctl.Version:
		b.fail(h, fmt.Errorf("its gompirun is version %q, want %s as here", hello.Version, ctl.Version))
	case b.job.wantsGPUs():
		h.hello, h.busy = hello, true
		h.Send(&ctl.FindGPUs{})
	default:
		h.hello = hello
		b.waiting--
	}
}

func (b *beginning) equipped(h *host, m *ctl.GPUs) {
	if !h.busy || h.failed != nil {
		return
	}
	gpus, err := readGPUs(m)
	if err != nil {
		b.fail(h, err)
		return
	}
	h.gpus, h.busy = gpus, false
	b.waiting--
	b.job.reportGPUs(h)
}

// fail notes the reason why a host cannot be used. The other hosts get FailureTime to report,
// too.
func (b *beginning) fail(h *host, err error) {
	if b.awaits(h) {
		b.waiting--
	}
	if len(b.job.hosts) > 1 && b.waiting > 0 && b.noneFailed() {
		b.late.Reset(min(FailureTime, max(0, b.job.spec.Reach.Limit()-time.Since(b.began))))
	}
	h.failed = err
}

func (b *beginning) noneFailed() bool {
	for _, h := range b.job.hosts {
		if h.failed != nil {
			return false
		}
	}
	return true
}

// awaits reports whether the facts of a host are missing.
func (b *beginning) awaits(h *host) bool { return h.failed == nil && (h.hello == nil || h.busy) }

// giveUp fails the hosts that have not answered.
func (b *beginning) giveUp() {
	b.stop(fmt.Errorf("no agent after %v", time.Since(b.began).Round(time.Second)))
	for _, h := range b.job.hosts {
		if h.started != nil && b.awaits(h) {
			what := "said hello"
			if h.busy {
				what = "said what GPUs there are"
			}
			b.fail(h, fmt.Errorf("the agent has not %s after %v", what, time.Since(b.began).Round(time.Second)))
		}
	}
}

// missing names the hosts whose facts are missing.
func (b *beginning) missing() string {
	var hosts []*host
	for _, h := range b.job.hosts {
		if b.awaits(h) {
			hosts = append(hosts, h)
		}
	}
	return someNames(hosts)
}

// failures returns the reasons why hosts cannot be used, a line for each.
func (b *beginning) failures() error {
	var errs []error
	for _, h := range b.job.hosts {
		if h.failed != nil {
			errs = append(errs, fmt.Errorf("%s: %w", h.name, h.failed))
		}
	}
	return errors.Join(errs...)
}
