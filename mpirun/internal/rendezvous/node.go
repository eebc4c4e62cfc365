package rendezvous

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"gompi/mpirun/internal/monitor"
	"gompi/mpirun/internal/remote"
)

// A Node is another node, from node 0's view.
type Node struct {
	Offer *Offer

	conn    *conn
	beating sync.Mutex // held during a beat, and from Pause on

	mu      sync.Mutex
	run     *agent           // the last one started
	signals chan<- os.Signal // gets signals to the node; nil: nothing does
	lost    error            // reason for the end of messages from the node
	gone    chan struct{}    // closed at that end
}

// NotifySignals makes c the receiver of signals to the node.
func (n *Node) NotifySignals(c chan<- os.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.signals = c
}

// Address returns this host's address, as seen by the node.
func (n *Node) Address() string {
	host, _, _ := net.SplitHostPort(n.conn.tls.LocalAddr().String())
	return host
}

// beat sends the node heartbeats of this process.
func (n *Node) beat(every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-n.gone:
			return
		case <-t.C:
			n.beating.Lock()
			n.conn.send(&beating{}, silence) // receive notices errors
			n.beating.Unlock()
		}
	}
}

// Pause announces the silence of this process until resume is called. Orders on their way may
// still arrive, but no heartbeat.
func (n *Node) Pause() (resume func()) {
	n.beating.Lock()
	n.conn.send(&pausing{}, time.Second) // receive notices errors
	return func() {
		n.conn.send(&beating{}, time.Second)
		n.beating.Unlock()
	}
}

func (n *Node) refuse(why string) {
	n.conn.send(&refused{why}, time.Second)
	n.conn.close()
}

// Finish notifies the node of the job's end. Finish waits a while for the node to close the
// connection: closing first may lose data in transit.
func (n *Node) Finish(e End) {
	if n.conn.send(&e, time.Second) == nil {
		select {
		case <-n.gone:
		case <-time.After(time.Second):
		}
	}
	n.conn.close()
}

// An agent is the agent on a node, from node 0's view.
type agent struct {
	node *Node
	out  *io.PipeWriter
	done chan struct{}
	how  string // how it ended
}

// Start makes the node start an agent. An earlier agent must have ended.
func (n *Node) Start() (*remote.Process, error) {
	r, w := io.Pipe()
	a := &agent{node: n, out: w, done: make(chan struct{})}
	n.mu.Lock()
	if n.lost != nil {
		defer n.mu.Unlock()
		return nil, n.lost
	}
	n.run = a
	n.mu.Unlock()
	return remote.Connected((*input)(a), r, a), n.conn.send(&startAgent{}, silence)
}

// Kill makes the node kill the agent, and closes the connection if the node does not obey in
// time.
func (a *agent) Kill() {
	select {
	case <-a.done:
		return
	default:
	}
	a.out.Close()
	a.node.conn.send(&killAgent{}, time.Second)
	time.AfterFunc(obedience, func() {
		select {
		case <-a.done:
		default:
			a.node.conn.close()
		}
	})
}

// Wait waits for the agent's end and describes how.
func (a *agent) Wait() string {
	<-a.done
	return a.how
}

// An input is an agent's input, as a writer.
type input agent

func (i *input) Write(data []byte) (int, error) {
	n := 0
	for n < len(data) {
		piece := data[n:min(len(data), n+chunk)]
		if err := i.node.conn.send(&agentData{piece}, 0); err != nil {
			return n, err
		}
		n += len(piece)
	}
	return n, nil
}

func (i *input) Close() error { return i.node.conn.send(&closeAgent{}, silence) }

// receive passes on the node's messages.
func (n *Node) receive() {
	for {
		m, err := n.conn.receive()
		if err != nil {
			n.lose(err)
			return
		}
		n.mu.Lock()
		run, signals := n.run, n.signals
		n.mu.Unlock()
		switch m := m.(type) {
		case *signalled:
			select {
			case signals <- syscall.Signal(m.number):
			default: // like the kernel while a signal is pending
			}
		case *agentData:
			if run != nil {
				run.out.Write(m.bytes) // fails without a reader, which does not matter here
			}
		case *agentEnded:
			if run != nil {
				run.end(monitor.Plain(m.how))
			}
		}
	}
}

// lose notes the end of the connection.
func (n *Node) lose(err error) {
	n.conn.close()
	n.mu.Lock()
	n.lost = err
	close(n.gone)
	run := n.run
	n.mu.Unlock()
	if run != nil {
		run.end("is lost: " + err.Error())
	}
}

// end ends the agent's output. Only the receiving goroutine calls it.
func (a *agent) end(how string) {
	select {
	case <-a.done:
	default:
		a.how = how
		close(a.done)
		a.out.Close()
	}
}
