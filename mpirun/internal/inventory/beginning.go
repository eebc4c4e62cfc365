package inventory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gompi/hostfile"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/link"
)

// FailureTime bounds the wait for the other hosts after the first failure, for a report of all
// failures together. ssh gives up connecting earlier.
const FailureTime = 12 * time.Second

// A Beginning is the time until all agents have sent the facts of their hosts, or have failed. One
// goroutine sets the exported fields, and calls Handle with the agents' events and GiveUp when Late
// fires.
type Beginning struct {
	Hosts   []*Entry
	GPUs    bool                    // they are facts, too
	Limit   time.Duration           // of the whole beginning
	Stop    context.CancelCauseFunc // ends the starts of agents
	Verbose func(format string, args ...any)
	Found   func(*Entry)              // called when a host's GPUs are known
	Other   func(*Entry, ctl.Message) // called with messages of other kinds

	Late    *time.Timer // ends the wait for agents
	Waiting int         // number of hosts whose facts are missing
	began   time.Time
}

// Begin starts the time.
func (b *Beginning) Begin() {
	b.began, b.Waiting, b.Late = time.Now(), len(b.Hosts), time.NewTimer(b.Limit)
}

// Handle handles an event of a host.
func (b *Beginning) Handle(ev link.Event) {
	e := b.Hosts[ev.Host]
	switch {
	case ev.Err != nil && e.failed != nil:
		e.Ended(ev.Err)
	case ev.Err != nil && e.Started == nil:
		e.Gone = true
		b.fail(e, ev.Err)
	case ev.Err != nil:
		b.fail(e, errors.New("the agent "+e.Ended(ev.Err)))
	case ev.Started != nil:
		e.Started = ev.Started
		b.Verbose("agent on %s: %s%s, after %v", e.Host, b.via(e), e.Started.Process(),
			time.Since(b.began).Round(time.Millisecond))
	default:
		b.message(e, ev.Message)
	}
}

// via returns the way by which an agent was started: "ssh", or "ssh from node3".
func (b *Beginning) via(e *Entry) string {
	if n := e.relay(); n >= 0 {
		return e.Started.Via + " from " + b.Hosts[n].Host
	}
	return e.Started.Via
}

// message handles an agent's hello, and its GPUs if they matter.
func (b *Beginning) message(e *Entry, m ctl.Message) {
	switch m := m.(type) {
	case *ctl.Hello:
		b.greeted(e, m)
	case *ctl.GPUs:
		b.equipped(e, m)
	default:
		b.Other(e, m)
	}
}

func (b *Beginning) greeted(e *Entry, hello *ctl.Hello) {
	switch {
	case e.Hello != nil || e.failed != nil:
	case hello.Version != ctl.Version:
		b.fail(e, fmt.Errorf("its gompirun is version %q, want %s as here", hello.Version, ctl.Version))
	case b.GPUs:
		e.Hello, e.busy = hello, true
		e.Send(&ctl.FindGPUs{})
	default:
		e.Hello = hello
		b.Waiting--
	}
}

func (b *Beginning) equipped(e *Entry, m *ctl.GPUs) {
	if !e.busy || e.failed != nil {
		return
	}
	gpus, err := readGPUs(m)
	if err != nil {
		b.fail(e, err)
		return
	}
	e.GPUs, e.busy = gpus, false
	b.Waiting--
	b.Found(e)
}

// fail notes the reason why a host cannot be used. The other hosts get FailureTime to report,
// too.
func (b *Beginning) fail(e *Entry, err error) {
	if e.awaited() {
		b.Waiting--
	}
	if len(b.Hosts) > 1 && b.Waiting > 0 && b.Failures() == nil {
		b.Late.Reset(min(FailureTime, max(0, b.Limit-time.Since(b.began))))
	}
	e.failed = err
}

// awaited reports whether the facts of a host are missing.
func (e *Entry) awaited() bool { return e.failed == nil && (e.Hello == nil || e.busy) }

// GiveUp fails the hosts that have not answered.
func (b *Beginning) GiveUp() {
	b.Stop(fmt.Errorf("no agent after %v", time.Since(b.began).Round(time.Second)))
	for _, e := range b.Hosts {
		if e.Started != nil && e.awaited() {
			what := "said hello"
			if e.busy {
				what = "said what GPUs there are"
			}
			b.fail(e, fmt.Errorf("the agent has not %s after %v", what, time.Since(b.began).Round(time.Second)))
		}
	}
}

// Missing names the hosts whose facts are missing.
func (b *Beginning) Missing() string {
	var missing hostfile.List
	for _, e := range b.Hosts {
		if e.awaited() {
			missing.Hosts = append(missing.Hosts, hostfile.Host{Name: e.Host})
		}
	}
	return missing.Names()
}

// Failures returns the reasons why hosts cannot be used, a line for each.
func (b *Beginning) Failures() error {
	var errs []error
	for _, e := range b.Hosts {
		if e.failed != nil {
			errs = append(errs, fmt.Errorf("%s: %w", e.Host, e.failed))
		}
	}
	return errors.Join(errs...)
}
