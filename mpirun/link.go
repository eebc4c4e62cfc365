package mpirun

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"gompi/hostfile"
	"gompi/mpirun/internal/attach"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/remote"
)

// A link is the launcher's end of the channel to one agent. One goroutine starts
// the agent and reads what it says until its end, another writes; neither
// decides anything.
type link struct {
	index  int // of its host among all
	host   string
	agent  *remote.Agent // nil until it runs
	hello  *ctl.Hello
	gpus   *hostGPUs // nil if nobody has asked
	busy   bool      // looking for GPUs: it hears nothing
	failed error     // why the host cannot be used

	pulse
	asking []attach.Question // who wants to know where its ranks are

	ranks   []int // it runs
	drained bool  // it has nothing left to do
	gone    bool  // the agent has been waited for

	mu      sync.Mutex
	queue   []byte
	writing bool
	talks   bool       // something has been sent
	quiet   *sync.Cond // signalled when nothing is queued or being written
}

// An event is what happened on a link: a message, or its end; neither when the
// agent has been started.
type event struct {
	link  *link
	m     ctl.Message
	err   error         // how the link ended
	agent *remote.Agent // that has been started
}

// Name is the host's.
func (l *link) Name() string { return l.host }

func newLink(index int, host string) *link {
	l := &link{index: index, host: host}
	l.quiet = sync.NewCond(&l.mu)
	return l
}

// serve starts the agent and sends what comes of it to events, the end last.
// done releases it when nobody listens any more, which is not before the agent
// is gone.
func (l *link) serve(ctx context.Context, starter remote.Starter, h hostfile.Host, events chan<- event, done <-chan struct{}) {
	agent, err := starter.Start(ctx, h)
	if err != nil {
		events <- event{link: l, err: err}
		return
	}
	events <- event{link: l, agent: agent}
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
		case events <- event{link: l, m: m, err: err}:
		case <-done:
			return
		}
		if err != nil {
			return
		}
	}
}

// reached says how the agent is reached.
func (l *link) reached() string {
	switch {
	case l.agent == nil:
		return ""
	case l.agent.Here():
		return "this machine"
	}
	return "by " + l.agent.Via
}

// Send queues m for the agent. It does not block. What cannot be delivered is
// dropped: the reader notices that the agent is gone.
func (l *link) Send(m ctl.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue, l.talks = ctl.Append(l.queue, m), true
	if !l.writing {
		l.writing = true
		go l.write()
	}
}

// nudge has what the agent sends next come at once: see ctl.Nudge. It does nothing
// before the agent has been spoken to; until then it may be unknown to the job.
func (l *link) nudge() {
	l.mu.Lock()
	talks := l.talks
	l.mu.Unlock()
	if talks {
		l.Send(&ctl.Nudge{})
	}
}

// write writes until nothing is queued.
func (l *link) write() {
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

// flush waits until everything has been written, at most for limit.
func (l *link) flush(limit time.Duration) {
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

// close ends the channel, which ends the agent. One that has not said anything
// yet may not even be one, and one that is busy would not notice.
func (l *link) close() {
	if l.agent == nil {
		return
	}
	l.agent.In.Close()
	if l.hello == nil || l.busy {
		l.agent.Kill()
	}
}

// kill ends the agent, or what stands for it here, at once.
func (l *link) kill() {
	if l.agent != nil {
		l.agent.Kill()
	}
}

// ended says why the channel ended, when it should not have. It ends the agent,
// if it has not ended by itself.
func (l *link) ended(err error) string {
	l.gone = true
	l.close()
	l.agent.Kill() // changes nothing about a process that is ending already
	how := l.agent.Wait()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return how
	}
	return err.Error() + "; it " + how
}

// await waits until the agent is gone, whose channel has been closed, or has
// not been started after all. Events of other links are dropped.
func (l *link) await(events <-chan event) {
	for !l.gone {
		e := <-events
		switch {
		case e.agent != nil:
			e.link.agent = e.agent
			e.link.close()
		case e.err != nil && e.link.agent == nil:
			e.link.gone = true
		case e.err != nil:
			e.link.ended(e.err)
		}
	}
}
