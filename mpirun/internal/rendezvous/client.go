package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"gompi/mpirun/internal/monitor"
	"gompi/mpirun/internal/remote"
)

// A Client is a node that joins node 0.
type Client struct {
	Own   *Offer
	Token []byte
	Log   func(line string) // prints a line for the user
	Run   func() (*remote.Process, error)

	conn   *conn
	beat   time.Duration // period of node 0's heartbeats, 0 for none
	paused atomic.Bool   // node 0 has announced its silence
	left   atomic.Int32  // the signal whose missing answer ended Serve; 0: none
}

// errRefused is wrapped by the error of a node that node 0 refuses.
var errRefused = errors.New("node 0 refuses this node")

// Join connects to node 0, again and again until ctx ends, because node 0 may not have started.
func (g *Client) Join(ctx context.Context, address string) error {
	noteAt := time.Now().Add(2 * time.Second)
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := g.try(ctx, address)
		if err == nil || errors.Is(err, errRefused) || errors.Is(err, errToken) {
			return g.explain(address, err)
		}
		if now := time.Now(); now.After(noteAt) {
			g.Log(fmt.Sprintf("waiting for node 0 at %s: %v", address, err))
			noteAt = now.Add(30 * time.Second)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("node 0 at %s: %w: %w", address, context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}

func (g *Client) explain(address string, err error) error {
	if errors.Is(err, errToken) {
		return fmt.Errorf("node 0 at %s %w, or is something else", address, err)
	}
	return err
}

// try makes one attempt. The answer to the offer comes when all nodes have joined.
func (g *Client) try(ctx context.Context, address string) error {
	nc, err := (&net.Dialer{Timeout: handshakeTime}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	nc.SetDeadline(time.Now().Add(handshakeTime))
	c, err := secure(nc, g.Token, false)
	if err != nil {
		return err
	}
	nc.SetDeadline(time.Time{})
	stop := context.AfterFunc(ctx, c.close)
	defer stop()
	var answer message
	if err = c.send(g.Own, handshakeTime); err == nil {
		answer, err = c.receive()
	}
	if err == nil {
		switch m := answer.(type) {
		case *welcome:
			g.conn, g.beat = c, m.beat
			return nil
		case *refused:
			err = fmt.Errorf("%w: %s", errRefused, monitor.Plain(m.why))
		case *End:
			err = fmt.Errorf("%w: %s", errRefused, monitor.Plain(m.Text))
		default:
			err = unexpected(m)
		}
	}
	c.close()
	return err
}

// Signal notifies node 0 of a signal to this process. Any goroutine may call Signal.
func (g *Client) Signal(s syscall.Signal) { g.conn.send(&signalled{int(s)}, time.Second) }

// answerTime is the time for which a suspended node 0 may leave an order to end the job unread.
const answerTime = 5 * time.Second

// An Unanswered is Serve's error after an order to end the job was not read.
type Unanswered struct{ Signal syscall.Signal }

func (u *Unanswered) Error() string {
	return fmt.Sprintf("it has been suspended and did not read signal %d (%v) for %v", u.Signal, u.Signal, answerTime)
}

// Order notifies node 0 of a signal to this process that ends the job. If node 0 is suspended,
// and stays so for answerTime, Serve returns an Unanswered.
func (g *Client) Order(s syscall.Signal) {
	g.Signal(s)
	go func() { // until answerTime has passed, or node 0 runs
		for range answerTime / time.Second { // one second may pass too early if this process was stopped
			time.Sleep(time.Second)
			if !g.paused.Load() {
				return
			}
		}
		g.left.CompareAndSwap(0, int32(s))
		g.Leave()
	}()
}

// Leave makes Serve return, regardless of node 0.
func (g *Client) Leave() { g.conn.close() }

// Serve runs agents by node 0's orders and returns the end of the job. When the connection is
// lost, or node 0 misses several heartbeats, Serve ends a running agent and returns an error.
func (g *Client) Serve() (*End, error) {
	defer g.conn.close()
	var run *relay
	defer func() { run.stop() }()
	for {
		m, err := g.receive()
		if err != nil {
			return nil, err
		}
		switch m := m.(type) {
		case *pausing:
			g.paused.Store(true)
		case *beating:
			g.paused.Store(false)
		case *startAgent:
			run.stop()
			if run, err = g.start(); err != nil {
				g.conn.send(&agentEnded{"was not started: " + err.Error()}, silence)
			}
		case *agentData:
			run.write(m.bytes)
		case *closeAgent:
			run.close()
		case *killAgent:
			run.kill()
		case *End:
			return m, nil
		}
	}
}

// receive returns the next message of node 0. A stop of this process counts as one missed
// heartbeat, however long: later heartbeats may be unread in the socket.
func (g *Client) receive() (message, error) {
	for missing := 1; ; missing++ {
		var due time.Time
		if g.beat > 0 && !g.paused.Load() {
			due = time.Now().Add(g.beat)
		}
		g.conn.tls.SetReadDeadline(due)
		m, err := g.conn.receive()
		if s := g.left.Load(); err != nil && s != 0 {
			return nil, &Unanswered{syscall.Signal(s)}
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return m, err
		}
		if missing == missedBeats {
			return nil, fmt.Errorf("nothing heard from it for %v: it is frozen, or the network is cut",
				missedBeats*g.beat)
		}
	}
}

// A relay is a running agent, whose output goes to node 0. nil is none.
type relay struct {
	agent *remote.Process
	done  chan struct{}
}

func (g *Client) start() (*relay, error) {
	a, err := g.Run()
	if err != nil {
		return nil, err
	}
	r := &relay{agent: a, done: make(chan struct{})}
	go func() { // until the agent has ended
		defer close(r.done)
		buf := make([]byte, chunk)
		for {
			n, err := a.Out.Read(buf)
			if n > 0 {
				g.conn.send(&agentData{buf[:n]}, 0) // Serve notices errors
			}
			if err != nil {
				break
			}
		}
		g.conn.send(&agentEnded{a.Wait()}, silence)
	}()
	return r, nil
}

func (r *relay) write(data []byte) {
	if r != nil {
		if d, ok := r.agent.In.(interface{ SetWriteDeadline(time.Time) error }); ok {
			d.SetWriteDeadline(time.Now().Add(silence))
		}
		if _, err := r.agent.In.Write(data); errors.Is(err, os.ErrDeadlineExceeded) {
			r.agent.Kill() // it is stopped, perhaps
		}
	}
}

func (r *relay) close() {
	if r != nil {
		r.agent.In.Close()
	}
}

func (r *relay) kill() {
	if r != nil {
		r.agent.Kill()
	}
}

// stop ends the agent in good order, or, after some time, by force.
func (r *relay) stop() {
	if r == nil {
		return
	}
	r.agent.In.Close()
	late := time.AfterFunc(silence, r.agent.Kill)
	defer late.Stop()
	<-r.done
}
