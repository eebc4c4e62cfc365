package inventory

import (
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"gompi/internal/sockets"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/link"
)

// An Agent is the agent of a host, like link.Agent. Before the agent has been started only
// Continue, Kill and Flush may be called. Its methods do not block, except Flush and Wait.
type Agent interface {
	Send(ctl.Message)          // from any goroutine
	Flush(limit time.Duration) // waits until all messages are sent
	Received() bool            // whether data has come since the last call
	Close()                    // ends the channel, which ends the agent
	Continue()                 // continues a stopped agent, or its local process
	Kill()                     // ends the agent, or its local process, at once; from any goroutine
	Wait() string              // waits for the agent's end, and describes how
}

// An Entry is the launcher's knowledge of one host and its agent.
type Entry struct {
	Index   int // among all hosts
	Host    string
	Agent   Agent
	Started *link.Started // nil until the agent runs
	Hello   *ctl.Hello
	GPUs    *GPUs // nil before they are found
	Gone    bool  // the agent has been waited for

	busy   bool  // looking for GPUs: receives no messages
	failed error // why the host cannot be used
}

// Name returns the host's name.
func (e *Entry) Name() string { return e.Host }

// Send sends m to the agent.
func (e *Entry) Send(m ctl.Message) { e.Agent.Send(m) }

// Here reports whether the agent is on this machine, and so has its clock.
func (e *Entry) Here() bool { return e.Started != nil && e.Started.Here }

// network is the launcher's network, in the form of Hello.
var network = sync.OnceValue(sockets.Network)

// sharesLoopback reports whether the agent has the launcher's loopback interface. A loopback
// address of the connection is no proof, because tunnels have one, too.
func (e *Entry) sharesLoopback() bool { return e.Started.Here || e.Hello.Network == network() }

// relay returns the number of the host from which the agent was started; -1 for the launcher's.
func (e *Entry) relay() int {
	for _, n := range slices.Backward(e.Started.Relays) {
		if n != e.Index {
			return n
		}
	}
	return -1
}

// Behind reports whether the way to the agent leads through another host, by number.
func (e *Entry) Behind(relay int) bool {
	return e.Index != relay && e.Started != nil && slices.Contains(e.Started.Relays, relay)
}

// reached describes the way to the agent for the user.
func (e *Entry) reached() string {
	switch {
	case e.Started == nil:
		return ""
	case e.Started.Here:
		return "this machine"
	}
	return "by " + e.Started.Via
}

// Close closes the channel, which ends the agent. A process without a hello, which may be no
// agent, and a busy agent, which may not notice, are killed.
func (e *Entry) Close() {
	if e.Started == nil {
		return
	}
	e.Agent.Close()
	if e.Hello == nil || e.busy {
		e.Agent.Kill()
	}
}

// Ended explains an unexpected end of the channel. An agent that has not ended by itself is
// killed.
func (e *Entry) Ended(err error) string {
	e.Gone = true
	e.Close()
	e.Agent.Kill() // no effect on a process that is ending already
	how := e.Agent.Wait()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrClosed) {
		return how
	}
	return err.Error() + "; it " + how
}

// EndedLate handles an event of the agent after the order to end.
func (e *Entry) EndedLate(ev link.Event) {
	switch {
	case ev.Started != nil:
		e.Started = ev.Started
		e.Close()
	case ev.Err != nil && e.Started == nil:
		e.Gone = true
	case ev.Err != nil:
		e.Ended(ev.Err)
	}
}
