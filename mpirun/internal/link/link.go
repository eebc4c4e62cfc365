// Package link is the channels between the launcher and its agents: direct, or through a tree of
// relays, which do not read the forwarded bytes. An Agent is the launcher's end of one.
package link

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"gompi/hostfile"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/remote"
)

// An Agent is the agent of a host, from the launcher's view. One goroutine starts the agent and
// reads its messages until its end, another goroutine writes; neither decides anything. Continue,
// Kill and Flush may be called at any time, other methods once the agent runs.
type Agent struct {
	received atomic.Bool // a message has come since the last call of Received

	mu      sync.Mutex
	process *remote.Process // nil until it runs
	out     *remote.Outbox  // to the process
	sent    bool            // a message has been sent
	host    int             // the host's number
	tree    *tree           // tree that leads to the agent; out is nil then
}

// Started describes an agent that has been started.
type Started struct {
	Via   string   // way to the agent, as in remote.Process
	Here  bool     // it is a process of this machine
	Srun  bool     // srun has started it
	PID   int      // of the process on this machine, 0 if there is none
	Login []string // login command of its host, as in remote.Process
	// Relays are the hosts on the way from the launcher, by number. The last host, perhaps the
	// agent's own, started the agent.
	Relays []int
}

// Process names the local process for the user: " (process 7)", or "" if there is none.
func (s *Started) Process() string {
	if s.PID == 0 {
		return ""
	}
	return fmt.Sprintf(" (process %d)", s.PID)
}

// An Event is a change of an agent: its start, a message, or the end of its channel.
type Event struct {
	Host    int      // the host's number
	Started *Started // the agent runs
	Message ctl.Message
	Err     error // reason for the channel's end; the last event
}

// StartAll starts the agents of hosts, within ctx. More than fanout hosts form a tree of at most
// that fan-out if starter allows that and fanout is not 0. Events are as in Start.
func StartAll(ctx context.Context, starter remote.Starter, fanout int, hosts []hostfile.Host,
	events chan<- Event, done <-chan struct{}) []*Agent {
	t := newTree(starter, hosts, fanout)
	agents := make([]*Agent, len(hosts))
	for n, h := range hosts {
		agents[n] = Start(ctx, t.at(n), h, n, events, done)
	}
	return agents
}

// Start starts the agent of a host, within ctx, and sends its events to events, its end last.
// Close done when events is no longer read, after the agent has ended. Start does not block.
func Start(ctx context.Context, starter remote.Starter, h hostfile.Host, number int,
	events chan<- Event, done <-chan struct{}) *Agent {
	a := &Agent{host: number}
	go a.serve(ctx, starter, h, number, events, done) // until the agent is gone or done is closed
	return a
}

func (a *Agent) serve(ctx context.Context, starter remote.Starter, h hostfile.Host, number int,
	events chan<- Event, done <-chan struct{}) {
	process, err := starter.Start(ctx, h)
	if err != nil {
		events <- Event{Host: number, Err: err}
		return
	}
	a.mu.Lock()
	if a.process, a.tree = process, treeOf(process); a.tree == nil {
		a.out = remote.NewOutbox(process)
	}
	a.mu.Unlock()
	started := &Started{Via: process.Via, Here: process.Here(), Srun: process.Via == remote.ViaSrun,
		PID: process.PID(), Login: process.Login, Relays: process.Relays}
	events <- Event{Host: number, Started: started}
	if process.Note != "" {
		events <- Event{Host: number, Message: &ctl.Note{Text: process.Note}}
	}
	r := ctl.NewReader(receiver{process.Out, &a.received})
	nudge := func() {}
	if started.Srun {
		nudge = a.nudge
	}
	r.Waiting = nudge
	for {
		m, err := r.Next()
		switch m.(type) {
		case *ctl.Started, *ctl.Pong, *ctl.Exited: // without an answer, and more messages follow
			nudge()
		case *ctl.Drained:
			if started.Srun {
				a.Close() // the agent waits for this
			}
		}
		select {
		case events <- Event{Host: number, Message: m, Err: err}:
		case <-done:
			return
		}
		if err != nil {
			return
		}
	}
}

// A receiver notes incoming data.
type receiver struct {
	io.Reader
	received *atomic.Bool
}

func (l receiver) Read(b []byte) (int, error) {
	n, err := l.Reader.Read(b)
	l.received.Store(true)
	return n, err
}

// Received reports whether a message has come since the last call.
func (a *Agent) Received() bool { return a.received.Swap(false) }

// Send queues m for the agent. It does not block. Undeliverable messages are dropped: the reader
// notices the agent's end.
func (a *Agent) Send(m ctl.Message) { Broadcast([]*Agent{a}, m) }

// Broadcast is Send to several agents. For agents behind a common host, m goes there once.
func Broadcast(agents []*Agent, m ctl.Message) {
	frame, behind := ctl.Append(nil, m), map[*tree][]int{}
	for _, a := range agents {
		a.mu.Lock()
		a.sent = true
		a.mu.Unlock()
		if a.tree == nil {
			a.out.Post(frame)
		} else {
			behind[a.tree] = append(behind[a.tree], a.host)
		}
	}
	for t, hosts := range behind {
		t.send(hosts, frame)
	}
}

// nudge makes the agent's next data arrive without delay: see ctl.Nudge. Before the first Send a
// nudge does nothing, because the job may not know the agent yet.
func (a *Agent) nudge() {
	a.mu.Lock()
	sent := a.sent
	a.mu.Unlock()
	if sent {
		a.Send(&ctl.Nudge{})
	}
}

// Flush waits until all messages have been written, at most for limit.
func (a *Agent) Flush(limit time.Duration) {
	a.mu.Lock()
	out, t := a.out, a.tree
	a.mu.Unlock()
	switch {
	case t != nil:
		t.flush(a.host, limit)
	case out != nil:
		out.Flush(limit)
	}
}

// Close ends the channel, which ends the agent.
func (a *Agent) Close() { a.process.Close() }

// Kill ends the agent, or its local process, at once, if the agent has been started. Any
// goroutine may call Kill.
func (a *Agent) Kill() {
	if process := a.started(); process != nil {
		process.Kill()
	}
}

// Continue continues a stopped agent, or its stopped local process.
func (a *Agent) Continue() {
	if process := a.started(); process != nil {
		process.Continue()
	}
}

// started returns the process, nil before its start.
func (a *Agent) started() *remote.Process {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.process
}

// Wait waits for the agent's end, after its channel's, and describes how.
func (a *Agent) Wait() string { return a.process.Wait() }
