package rendezvous

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"gompi/internal/sockets"
	"gompi/mpirun/internal/monitor"
)

// morePending is the number of connections, beyond the nodes, that may authenticate at once.
const morePending = 64

// A Server is node 0, which the others join.
type Server struct {
	Own   *Offer
	Token []byte
	Log   func(line string) // prints a line for the user

	// LastCall is the time for which a job with its least number of nodes waits for more.
	LastCall time.Duration

	// Beat is the period of this node's heartbeats to the others; 0 for none. A node that misses
	// several gives the job up.
	Beat time.Duration

	listener net.Listener
	rejected atomic.Int64 // number of rejected connections
}

// Listen begins to listen at an address.
func (h *Server) Listen(address string) error {
	var err error
	h.listener, err = net.Listen("tcp", address)
	return err
}

// Close stops listening.
func (h *Server) Close() { h.listener.Close() }

// Gather returns the other nodes, sorted by number. Gather waits until the job has its most
// nodes, or, once the least are there, for LastCall. It fails if ctx ends first. Until Close,
// later nodes are refused.
func (h *Server) Gather(ctx context.Context) ([]*Node, error) {
	arrivals, losses := make(chan *Node), make(chan *Node)
	gone, stop := context.WithCancel(ctx)
	defer stop()
	go h.accept(gone, arrivals, losses)
	var nodes []*Node
	var enough <-chan time.Time
	progress := time.NewTimer(2 * time.Second)
	defer progress.Stop()
	for len(nodes) < h.Own.Most-1 {
		if len(nodes) >= h.Own.Least-1 && enough == nil {
			enough = time.After(h.LastCall)
			h.Log(fmt.Sprintf("%d nodes are here, which is enough: waiting %v for more (-last-call)", len(nodes)+1,
				h.LastCall))
		}
		select {
		case n := <-arrivals:
			nodes = h.admit(nodes, n)
		case n := <-losses:
			if i := slices.Index(nodes, n); i >= 0 {
				nodes = slices.Delete(nodes, i, i+1)
				h.Log(fmt.Sprintf("%s has left the rendezvous", n.Offer.Host))
			}
			if len(nodes) < h.Own.Least-1 {
				enough = nil
			}
		case <-enough:
			return h.number(nodes), nil
		case <-progress.C:
			h.Log(fmt.Sprintf("waiting at %v for %s", h.listener.Addr(), h.missing(nodes)))
			progress.Reset(30 * time.Second)
		case <-ctx.Done():
			for _, n := range nodes {
				n.Finish(End{125, "node 0 has waited in vain for " + h.missing(nodes)})
			}
			return nil, fmt.Errorf("%w: still missing: %s", context.Cause(ctx), h.missing(nodes))
		}
	}
	return h.number(nodes), nil
}

// accept lets in every node with the token and a fitting offer, until the listener is closed.
func (h *Server) accept(ctx context.Context, arrivals, losses chan<- *Node) {
	d := sockets.Acceptor{MaxPending: h.Own.Most + morePending, Timeout: handshakeTime,
		Authenticate: func(nc net.Conn) func() {
			c, err := secure(nc, h.Token, true)
			if err != nil {
				h.logRejected(nc.RemoteAddr(), err)
				return nil
			}
			return func() { h.receive(ctx, c, arrivals, losses) }
		},
		OnError: func(err error) {
			h.Log(fmt.Sprintf("no connection can be accepted at the rendezvous: %v; it is tried again", err))
		},
	}
	d.Serve(h.listener)
}

// logRejected reports a rejected connection if its number is a power of two.
func (h *Server) logRejected(from net.Addr, err error) {
	n := h.rejected.Add(1)
	if n&(n-1) != 0 {
		return
	}
	h.Log(fmt.Sprintf("%v came to the rendezvous and %v: it was turned away, %d so far (the next line of this kind comes at %d)", from, err, n, 2*n))
}

// receive passes on a node that knows the token.
func (h *Server) receive(ctx context.Context, c *conn, arrivals, losses chan<- *Node) {
	n, err := h.welcome(c)
	if err != nil {
		h.Log(fmt.Sprintf("%v came to the rendezvous and %v", c.tls.RemoteAddr(), err))
		return
	}
	select {
	case arrivals <- n:
	case <-ctx.Done():
		h.Log(fmt.Sprintf("%s has come too late, and was sent away", n.Offer.Host))
		n.refuse("the job has begun without this node")
		return
	}
	select { // until the job begins
	case <-n.gone:
		select {
		case losses <- n:
		case <-ctx.Done():
		}
	case <-ctx.Done():
	}
}

// welcome reads a node's offer, and refuses an unfit one.
func (h *Server) welcome(c *conn) (*Node, error) {
	c.tls.SetReadDeadline(time.Now().Add(handshakeTime))
	m, err := c.receive()
	c.tls.SetReadDeadline(time.Time{})
	offer, ok := m.(*Offer)
	if err == nil && !ok {
		err = unexpected(m)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	offer.Host, offer.Version = monitor.Plain(offer.Host), monitor.Plain(offer.Version)
	n := &Node{Offer: offer, conn: c, gone: make(chan struct{})}
	if why := refusal(h.Own, offer); why != "" {
		n.refuse(why)
		return nil, fmt.Errorf("was refused (%s): %s", offer.Host, why)
	}
	go n.receive() // until the connection ends
	return n, nil
}

// admit adds a node if its number is free.
func (h *Server) admit(nodes []*Node, n *Node) []*Node {
	same := func(o *Node) bool { return n.Offer.Node > 0 && o.Offer.Node == n.Offer.Node }
	if i := slices.IndexFunc(nodes, same); i >= 0 {
		why := fmt.Sprintf("node %d is %s already", n.Offer.Node, nodes[i].Offer.Host)
		n.refuse(why)
		h.Log(fmt.Sprintf("%s was refused: %s", n.Offer.Host, why))
		return nodes
	}
	return append(nodes, n)
}

// number gives numbers to the nodes without one, and sorts the nodes. Numbers may stay unused.
func (h *Server) number(nodes []*Node) []*Node {
	taken := map[int]bool{}
	for _, n := range nodes {
		taken[n.Offer.Node] = true
	}
	next := 1
	for _, n := range nodes {
		if n.Offer.Node > 0 {
			continue
		}
		for taken[next] {
			next++
		}
		n.Offer.Node, taken[next] = next, true
	}
	slices.SortFunc(nodes, func(a, b *Node) int { return a.Offer.Node - b.Offer.Node })
	for _, n := range nodes {
		n.conn.send(&welcome{h.Beat}, handshakeTime) // receive notices errors
		if h.Beat > 0 {
			go n.beat(h.Beat) // until the connection ends
		}
	}
	return nodes
}

// missing names the nodes that have not connected.
func (h *Server) missing(nodes []*Node) string {
	var names []string
	unnumbered := 0
	taken := map[int]bool{}
	for _, n := range nodes {
		if taken[n.Offer.Node] = true; n.Offer.Node < 0 {
			unnumbered++
		}
	}
	for i := 1; i < h.Own.Most; i++ {
		if !taken[i] {
			names = append(names, fmt.Sprint(i))
		}
	}
	if unnumbered > 0 || len(names) > 8 {
		return fmt.Sprintf("%d more nodes (-nnodes)", h.Own.Most-1-len(nodes))
	}
	return "node " + strings.Join(names, ", ")
}
