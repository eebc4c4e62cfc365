package boot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"gompi/internal/accept"
	"gompi/internal/boot/wire"
	"gompi/internal/challenge"
	"gompi/internal/forked"
	"gompi/internal/seal"
	"gompi/internal/world"
)

// A server stands in for the agents where there are none. It runs in the process of rank 0. Every
// rank has a connection to it, by which it gathers the cards at the start, and later passes on
// events that no connection between two other ranks can report.
type server struct {
	size      int
	secret    [32]byte
	job       string
	ln        net.Listener
	allJoined func() // called once, when all ranks have come

	mu        sync.Mutex
	ranks     []*rankConn // by rank, nil until it has come
	joined    int
	cards     [][]byte
	gathered  int
	backlog   []byte // messages for ranks that join later
	revoked   map[uint64]bool
	inquired  map[world.Rank]bool // ranks whose leaving is to be reported
	acceptErr error               // why no connection could be accepted once
}

// A rankConn is the connection of one rank to the server.
type rankConn struct {
	rank                         world.Rank
	conn                         net.Conn
	host, machine, segmentSocket string
	hasCard                      bool
	left                         bool // it has said goodbye
	out                          outbox
}

// howLost says what became of a rank whose connection to the server failed.
func howLost(err error) string {
	switch {
	case errors.Is(err, syscall.ETIMEDOUT), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "is out of reach: " + err.Error()
	case errors.Is(err, wire.ErrFrame), errors.Is(err, seal.ErrForged):
		return "sent what rank 0 does not understand: " + err.Error()
	}
	return "ended without closing its communicators"
}

const (
	// proofTime bounds how long a connection may take to prove itself.
	proofTime = 10 * time.Second
	// ownDelay bounds how long a message to rank 0 waits until the others are sent theirs,
	// closeTime how long rank 0's goodbye does.
	ownDelay  = 200 * time.Millisecond
	closeTime = 2 * time.Second
	// moreStrangers than there are ranks may be proving themselves at once.
	morePending = 256
)

// keepAlive finds out within half a minute that a host is gone.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4}

// serverHandshake is the handshake of a rank with the server. The rank sends its number. All that
// follows is sealed.
func serverHandshake(secret *[32]byte) challenge.Handshake {
	return challenge.Handshake{Protocol: "gompihub4", Secret: secret, IDSize: 4}
}

// newServer starts a server for size ranks, and returns rank 0's own connection to it.
func newServer(size int, secret [32]byte, ln net.Listener, met func()) (*server, net.Conn) {
	job, _ := NewJob()
	h := &server{size: size, secret: secret, job: job, ln: ln, allJoined: met, ranks: make([]*rankConn, size), cards: make([][]byte, size), revoked: map[uint64]bool{}, inquired: map[world.Rank]bool{}}
	near, far := net.Pipe()
	go h.serve(&rankConn{rank: 0, conn: far}) // until rank 0 leaves
	go h.accept()
	return h, near
}

// accept lets the ranks of the job in until all have come, or the server is closed.
func (h *server) accept() {
	d := accept.Acceptor{MaxPending: h.size + morePending, Timeout: proofTime, Authenticate: h.authenticate, OnError: func(err error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.acceptErr = err
	}}
	d.Serve(h.ln)
}

// authenticate finds out which rank of the job has connected.
func (h *server) authenticate(conn net.Conn) func() {
	forked.NoteConn(conn)
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetKeepAliveConfig(keepAlive) // without it a lost host is noticed by its data connections
	}
	session, err := serverHandshake(&h.secret).Answer(conn)
	if err != nil {
		return nil
	}
	rank := world.Rank(binary.LittleEndian.Uint32(session.CallerID))
	if rank < 1 || int(rank) >= h.size {
		return nil
	}
	sealed := seal.NewConn(conn, session.Send, session.Receive)
	return func() { h.serve(&rankConn{rank: rank, conn: sealed}) }
}

// serve handles the messages of a rank until it is gone.
func (h *server) serve(g *rankConn) {
	frames := wire.Frames{Limit: wire.MaxUp}
	for {
		m, err := wire.Receive(g.conn, &frames)
		if err == nil {
			err = h.handle(g, m)
		}
		if err != nil {
			h.lost(g, err)
			return
		}
	}
}

// handle handles one message of a rank.
func (h *server) handle(g *rankConn, m wire.Message) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	join, first := m.(*wire.Join)
	if first != (h.ranks[g.rank] != g) {
		return fmt.Errorf("%w: %T out of turn", wire.ErrFrame, m)
	}
	switch m := m.(type) {
	case *wire.Join:
		return h.join(g, join)
	case *wire.Card:
		if g.hasCard {
			return fmt.Errorf("%w: a second card", wire.ErrFrame)
		}
		g.hasCard = true
		h.cards[g.rank] = bytes.Clone(m.Data)
		if h.gathered++; h.gathered == h.size {
			h.broadcast(&wire.Cards{Data: h.cards})
		}
	case *wire.Revoke:
		if h.revoked[m.Comm] {
			break // another rank was first
		}
		h.revoked[m.Comm] = true
		h.broadcast(&wire.Revoked{Rank: g.rank, Comm: m.Comm, Cause: m.Cause})
	case *wire.Abort:
		h.broadcast(&wire.Terminate{Text: fmt.Sprintf("rank %d aborted the job with status %d: %s", g.rank, m.Code, m.Reason)})
	case *wire.Leave:
		g.left = true
		if !g.hasCard {
			h.broadcast(&wire.Died{Rank: g.rank, Text: "left before all ranks had met"})
		}
		h.reportLeft(g.rank)
	case *wire.Inquire:
		h.inquired[m.Rank] = true
		h.reportLeft(m.Rank)
	default:
		return fmt.Errorf("%w: unexpected %T", wire.ErrFrame, m)
	}
	return nil
}

// join takes a rank in; the last has everybody welcomed.
func (h *server) join(g *rankConn, m *wire.Join) error {
	if h.ranks[g.rank] != nil {
		return fmt.Errorf("%w: a second rank %d", wire.ErrFrame, g.rank)
	}
	g.host, g.machine, g.segmentSocket = m.Host, m.Machine, m.SegmentSocket
	h.ranks[g.rank] = g
	g.out.conn = g.conn
	if g.rank == 0 {
		// A message may make rank 0 exit, and the server with it: send the others theirs first.
		g.out.before = func() { h.flush(ownDelay) }
	}
	g.out.send(h.backlog)
	if h.joined++; h.joined == h.size {
		h.ln.Close()
		h.welcome()
		h.allJoined()
	}
	return nil
}

// welcome sends every rank its number, and which ranks share its host.
func (h *server) welcome() {
	nodes := map[[2]string]int{}
	nodeOf := make([]int, h.size)
	var hosts, sockets []string // by node
	var locals []int            // ranks by node
	for r, g := range h.ranks {
		id := [2]string{g.host, g.machine}
		if _, ok := nodes[id]; !ok {
			nodes[id] = len(hosts)
			hosts, sockets, locals = append(hosts, g.host), append(sockets, g.segmentSocket), append(locals, 0)
		}
		nodeOf[r] = nodes[id]
		locals[nodeOf[r]]++
	}
	placement, seen := wire.Runs(nodeOf), make([]world.LocalRank, len(hosts))
	for r, g := range h.ranks {
		n := nodeOf[r]
		g.out.send(wire.Append(nil, &wire.Welcome{
			Rank: world.Rank(r), Size: h.size, LocalRank: seen[n], LocalSize: locals[n], Node: n,
			JobID: h.job, Placement: placement, Hosts: hosts, SegmentSocket: sockets[n],
		}))
		seen[n]++
	}
}

// pass forwards a message of rank 0. It returns when it has been sent to the others, or after
// ownDelay: rank 0 may exit next, and the server with it.
func (h *server) pass(m wire.Message) error {
	h.mu.Lock()
	own := h.ranks[0]
	h.mu.Unlock()
	err := h.handle(own, m)
	h.flush(ownDelay)
	return err
}

// reportLeft reports that a rank has left, if it has and another rank has inquired.
func (h *server) reportLeft(rank world.Rank) {
	if int(rank) < h.size && h.inquired[rank] && h.ranks[rank] != nil && h.ranks[rank].left {
		delete(h.inquired, rank)
		h.broadcast(&wire.Left{Rank: rank})
	}
}

// broadcast sends m to all ranks, also to those that connect later.
func (h *server) broadcast(m wire.Message) {
	frame := wire.Append(nil, m)
	if h.joined < h.size {
		h.backlog = append(h.backlog, frame...)
	}
	for _, g := range h.ranks {
		if g != nil && !g.left {
			g.out.send(frame)
		}
	}
}

// lost handles the end of a connection.
func (h *server) lost(g *rankConn, err error) {
	g.conn.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ranks[g.rank] == g && !g.left {
		g.left = true
		h.broadcast(&wire.Died{Rank: g.rank, Text: howLost(err)})
	}
}

// giveUp ends the job of the ranks that have come, because others have not.
func (h *server) giveUp(after time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var missing []int
	for r, g := range h.ranks {
		if g == nil {
			missing = append(missing, r)
		}
	}
	if len(missing) == 0 {
		return
	}
	text := fmt.Sprintf("%d of %d ranks have not come within %v, the first is rank %d", len(missing), h.size, after.Round(time.Second), missing[0])
	if h.acceptErr != nil {
		text += fmt.Sprintf("; rank 0 could not accept connections: %v", h.acceptErr)
	}
	h.broadcast(&wire.Terminate{Text: text})
}

// close closes the server when rank 0 leaves. It first sends the others Closing, so that they do
// not report the lost connection.
func (h *server) close() {
	h.ln.Close()
	h.mu.Lock()
	if g := h.ranks[0]; g != nil {
		g.left = true
	}
	h.broadcast(&wire.Closing{})
	h.mu.Unlock()
	h.flush(closeTime)
}

// flush waits until all ranks but rank 0 have been sent what there is for them,
// at most for limit.
func (h *server) flush(limit time.Duration) {
	h.mu.Lock()
	conns := slices.Clone(h.ranks[1:])
	h.mu.Unlock()
	deadline := time.Now().Add(limit)
	for _, g := range conns {
		if g != nil {
			g.out.flush(time.Until(deadline))
		}
	}
}

// An outbox sends frames to one connection. Its senders do not wait.
type outbox struct {
	conn    net.Conn
	before  func() // called before each write; may be nil
	mu      sync.Mutex
	queue   []byte
	writing bool
	done    chan struct{} // closed when nothing is queued or being written any more
}

// maxQueued bounds what waits for a rank that does not read.
const maxQueued = 256 << 20

func (o *outbox) send(frame []byte) {
	if len(frame) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) > maxQueued {
		o.conn.Close()
		return
	}
	o.queue = append(o.queue, frame...)
	if !o.writing {
		o.writing, o.done = true, make(chan struct{})
		go o.write() // until nothing is queued
	}
}

func (o *outbox) write() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) > 0 {
		queue := o.queue
		o.queue = nil
		o.mu.Unlock()
		if o.before != nil {
			o.before()
		}
		o.conn.Write(queue) // an error shows when the connection is read
		o.mu.Lock()
	}
	o.writing = false
	close(o.done)
}

// flush waits until everything has been written, at most for limit.
func (o *outbox) flush(limit time.Duration) {
	o.mu.Lock()
	writing, done := o.writing, o.done
	o.mu.Unlock()
	if !writing {
		return
	}
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}
