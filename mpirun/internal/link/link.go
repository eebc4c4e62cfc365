// Package link is the launcher's end of the control channels to its agents.
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
	"gompi/mpirun/internal/tree"
)

// An Agent is the agent of one host, seen from the launcher. One goroutine starts it and reads its
// messages until its end, another writes; neither decides anything. Other methods than Continue,
// Kill and Flush are for when the agent runs.
type Agent struct {
	received atomic.Bool // something has come since the last call of Received

	mu      sync.Mutex
	process *remote.Process // nil until it runs
	out     *remote.Outbox  // to it
	sent    bool            // something has been sent
	host    int             // its number among all
	tree    *tree.Tree      // that it is reached through; out is nil then
}

// Lost is why the channel of an agent has ended that was reached through another host: that is
// lost.
type Lost = tree.Lost

// Started is what is known of an agent that has been started.
type Started struct {
	Via   string   // how it is reached, as remote.Process has it
	Here  bool     // it is a process of this machine
	Srun  bool     // srun has started it
	PID   int      // of the process on this machine, 0 if there is none
	Login []string // the command that logs in to its host, as remote.Process has it
	// Relays are the hosts through which it is reached, by number, from the launcher on; on the
	// last, which may be its own, it was started.
	Relays []int
}

// Process names the process on this machine for the user: " (process 7)", or "" if there is none.
func (s *Started) Process() string {
	if s.PID == 0 {
		return ""
	}
	return fmt.Sprintf(" (process %d)", s.PID)
}

// An Event is what happened to an agent: it has been started, a message has come, or its channel
// has ended.
type Event struct {
	Host    int      // its number among all
	Started *Started // it runs now
	Message ctl.Message
	Err     error // how the channel ended; the last event
}

// StartAll starts the agents of hosts, within ctx, those of more than fanout hosts in a tree of
// that fan-out at most, if starter allows that and it is not 0. Events are as those of Start.
func StartAll(ctx context.Context, starter remote.Starter, fanout int, hosts []hostfile.Host, events chan<- Event, done <-chan struct{}) []*Agent {
	t := tree.New(starter, hosts, fanout)
	agents := make([]*Agent, len(hosts))
	for n, h := range hosts {
		agents[n] = Start(ctx, t.At(n), h, n, events, done)
	}
	return agents
}

// Start starts the agent of a host, within ctx, and sends its events to events, its end
// last. Close done when events is not read any more, after the agent has ended. Start does not
// block.
func Start(ctx context.Context, starter remote.Starter, h hostfile.Host, number int, events chan<- Event, done <-chan struct{}) *Agent {
	a := &Agent{host: number}
	go a.serve(ctx, starter, h, number, events, done) // until the agent is gone or done is closed
	return a
}

func (a *Agent) serve(ctx context.Context, starter remote.Starter, h hostfile.Host, number int, events chan<- Event, done <-chan struct{}) {
	process, err := starter.Start(ctx, h)
	if err != nil {
		events <- Event{Host: number, Err: err}
		return
	}
	a.mu.Lock()
	if a.process, a.tree = process, tree.Of(process); a.tree == nil {
		a.out = remote.NewOutbox(process)
	}
	a.mu.Unlock()
	started := &Started{Via: process.Via, Here: process.Here(), Srun: process.Via == remote.ViaSrun, PID: process.PID(), Login: process.Login, Relays: process.Relays}
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
		case *ctl.Started, *ctl.Pong, *ctl.Exited: // which get no answer, and more follows
			nudge()
		case *ctl.Drained:
			if started.Srun {
				a.Close() // what it waits for
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

// A receiver notes when something comes.
type receiver struct {
	io.Reader
	received *atomic.Bool
}

func (l receiver) Read(b []byte) (int, error) {
	n, err := l.Reader.Read(b)
	l.received.Store(true)
	return n, err
}

// Received reports whether something has come since it was last called.
func (a *Agent) Received() bool { return a.received.Swap(false) }

// Send queues m for the agent. It does not block. What cannot be delivered is
// dropped: the reader notices that the agent is gone.
func (a *Agent) Send(m ctl.Message) { Broadcast([]*Agent{a}, m) }

// Broadcast is Send to some agents. To those that are reached through one host m goes there once.
func Broadcast(agents []*Agent, m ctl.Message) {
	frame, behind := ctl.Append(nil, m), map[*tree.Tree][]int{}
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
		t.Send(hosts, frame)
	}
}

// nudge makes the agent's next data arrive without delay: see ctl.Nudge. It does nothing before the
// first Send: until then the job may not know the agent.
func (a *Agent) nudge() {
	a.mu.Lock()
	sent := a.sent
	a.mu.Unlock()
	if sent {
		a.Send(&ctl.Nudge{})
	}
}

// Flush waits until everything has been written, at most for limit.
func (a *Agent) Flush(limit time.Duration) {
	a.mu.Lock()
	out, t := a.out, a.tree
	a.mu.Unlock()
	switch {
	case t != nil:
		t.Flush(a.host, limit)
	case out != nil:
		out.Flush(limit)
	}
}

// Close ends the channel, which ends the agent.
func (a *Agent) Close() { a.process.Close() }

// Kill ends the agent, or what stands for it here, at once, if it has been started. Any
// goroutine may call it.
func (a *Agent) Kill() {
	if process := a.started(); process != nil {
		process.Kill()
	}
}

// Continue continues the agent, or what stands for it here, if it has been started and is stopped.
func (a *Agent) Continue() {
	if process := a.started(); process != nil {
		process.Continue()
	}
}

// started returns the process, nil until it runs.
func (a *Agent) started() *remote.Process {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.process
}

// Wait waits until the agent has ended, once its channel has, and returns how, in words.
func (a *Agent) Wait() string { return a.process.Wait() }
