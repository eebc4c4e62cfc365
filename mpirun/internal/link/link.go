// Package link is the launcher's end of the channels to its agents.
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

// A Link is the channel to one agent. One goroutine starts the agent and reads what it
// says until its end, another writes; neither decides anything. Other methods than Continue, Kill
// and Flush are for when the agent runs.
type Link struct {
	heard atomic.Bool // something has come since the last call of Heard

	mu      sync.Mutex
	agent   *remote.Agent // nil until it runs
	queue   []byte
	writing bool
	talks   bool       // something has been sent
	quiet   *sync.Cond // signalled when nothing is queued or being written
}

// An Agent is what is known of an agent that has been started.
type Agent struct {
	Via   string   // how it is reached, as remote.Agent has it
	Here  bool     // it is a process of this machine
	PID   int      // of the process on this machine, 0 if there is none
	Login []string // the command that logs in to its host, as remote.Agent has it
}

// Process names the process on this machine for the user: " (process 7)", or "" if there is none.
func (a *Agent) Process() string {
	if a.PID == 0 {
		return ""
	}
	return fmt.Sprintf(" (process %d)", a.PID)
}

// An Event is what happened on a link: its agent has been started, a message has come, or
// its end.
type Event struct {
	Host    int    // its number among all
	Agent   *Agent // that has been started
	Message ctl.Message
	Err     error // how the link ended; the last event
}

// Start starts the agent of a host, within ctx, and sends the link's events to events, its end
// last. Close done when events is not read any more, after the agent has ended. Start does not
// block.
func Start(ctx context.Context, starter remote.Starter, h hostfile.Host, number int, events chan<- Event, done <-chan struct{}) *Link {
	l := &Link{}
	l.quiet = sync.NewCond(&l.mu)
	go l.serve(ctx, starter, h, number, events, done) // until the agent is gone or done is closed
	return l
}

func (l *Link) serve(ctx context.Context, starter remote.Starter, h hostfile.Host, number int, events chan<- Event, done <-chan struct{}) {
	agent, err := starter.Start(ctx, h)
	if err != nil {
		events <- Event{Host: number, Err: err}
		return
	}
	l.mu.Lock()
	l.agent = agent
	l.mu.Unlock()
	events <- Event{Host: number, Agent: &Agent{Via: agent.Via, Here: agent.Here(), PID: agent.PID(), Login: agent.Login}}
	r := ctl.NewReader(listener{agent.Out, &l.heard})
	nudge := func() {}
	if agent.Via == remote.ViaSrun {
		nudge = l.nudge
	}
	r.Waiting = nudge
	for {
		m, err := r.Next()
		switch m.(type) {
		case *ctl.Started, *ctl.Pong: // which get no answer, and more follows
			nudge()
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

// A listener notes when something comes.
type listener struct {
	io.Reader
	heard *atomic.Bool
}

func (l listener) Read(b []byte) (int, error) {
	n, err := l.Reader.Read(b)
	l.heard.Store(true)
	return n, err
}

// Heard reports whether something has come since it was last called.
func (l *Link) Heard() bool { return l.heard.Swap(false) }

// Send queues m for the agent. It does not block. What cannot be delivered is
// dropped: the reader notices that the agent is gone.
func (l *Link) Send(m ctl.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue, l.talks = ctl.Append(l.queue, m), true
	if !l.writing {
		l.writing = true
		go l.write()
	}
}

// nudge makes the agent's next data arrive without delay: see ctl.Nudge. It does nothing before the
// first Send: until then the job may not know the agent.
func (l *Link) nudge() {
	l.mu.Lock()
	talks := l.talks
	l.mu.Unlock()
	if talks {
		l.Send(&ctl.Nudge{})
	}
}

// write writes until nothing is queued.
func (l *Link) write() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) > 0 {
		queue := l.queue
		l.queue = nil
		l.mu.Unlock()
		l.agent.In.Write(queue) // an error means that the agent is gone, which read reports
		l.mu.Lock()
	}
	l.writing = false
	l.quiet.Broadcast()
}

// Flush waits until everything has been written, at most for limit.
func (l *Link) Flush(limit time.Duration) {
	expired := false
	timer := time.AfterFunc(limit, func() {
		l.mu.Lock()
		expired = true
		l.quiet.Broadcast()
		l.mu.Unlock()
	})
	defer timer.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.writing && !expired {
		l.quiet.Wait()
	}
}

// Close ends the channel, which ends the agent, if it hears that.
func (l *Link) Close() { l.agent.Close() }

// Kill ends the agent, or what stands for it here, at once, if it has been started. Any
// goroutine may call it.
func (l *Link) Kill() {
	if agent := l.started(); agent != nil {
		agent.Kill()
	}
}

// Continue continues the agent, or what stands for it here, if it has been started and is stopped.
func (l *Link) Continue() {
	if agent := l.started(); agent != nil {
		agent.Continue()
	}
}

// started returns the agent, nil until it runs.
func (l *Link) started() *remote.Agent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.agent
}

// Wait waits until the agent has ended, once its channel has, and says how, in words.
func (l *Link) Wait() string { return l.agent.Wait() }
