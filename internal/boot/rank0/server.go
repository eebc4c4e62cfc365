// Package rank0 lets ranks without an agent meet at a server in the process of rank 0. A Contact
// has its addresses, and Dial connects.
package rank0

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

	"gompi/internal/boot/wire"
	"gompi/internal/seal"
	"gompi/internal/sockets"
	"gompi/internal/world"
)

// A Server, in the process of rank 0, replaces the agents. Every rank has a connection to the
// Server. At the start the server gathers their cards. Later it passes on events that no connection
// between two other ranks can report.
type Server struct {
	size      int
	secret    [32]byte
	job       string
	ln        net.Listener
	allJoined func() // called once, when all ranks have joined

	mu        sync.Mutex
	ranks     []*rankConn // by rank, nil until the rank has joined
	joined    int
	cards     [][]byte
	gathered  int
	backlog   []byte // messages for ranks that join later
	revoked   map[uint64]bool
	inquired  map[world.Rank]bool // ranks of which a Left is to be reported
	acceptErr error               // why an accept failed
}

// A rankConn is the connection of one rank to the server.
type rankConn struct {
	rank                         world.Rank
	conn                         net.Conn
	host, machine, segmentSocket string
	hasCard                      bool
	left                         bool // the rank has sent goodbye
	out                          outbox
}

// HowLost describes the end of a rank whose connection to the server failed.
func HowLost(err error) string {
	switch {
	case errors.Is(err, syscall.ETIMEDOUT), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "is out of reach: " + err.Error()
	case errors.Is(err, wire.ErrFrame), errors.Is(err, seal.ErrForged):
		return "sent what rank 0 does not understand: " + err.Error()
	}
	return "ended without closing its communicators"
}

const (
	// proofTime bounds the handshake of a connection.
	proofTime = 10 * time.Second
	// ownDelay bounds the wait of a message to rank 0 for the same message to other ranks.
	// closeTime bounds this wait at rank 0's goodbye.
	ownDelay  = 200 * time.Millisecond
	closeTime = 2 * time.Second
	// MorePending is the number of connections, beyond the number of ranks, that may be in a
	// handshake at once.
	MorePending = 256
)

// keepAlive detects the loss of a host within half a minute.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4}

// Handshake is the handshake of a rank with the server. The rank sends its number. All later bytes
// are sealed.
func Handshake(secret *[32]byte) seal.Handshake {
	return seal.Handshake{Protocol: "gompihub4", Secret: secret, IDSize: 4}
}

// New starts a server for size ranks, and returns rank 0's own connection.
func New(size int, job string, secret [32]byte, ln net.Listener, met func()) (*Server, net.Conn) {
	s := &Server{size: size, secret: secret, job: job, ln: ln, allJoined: met, ranks: make([]*rankConn, size),
		cards: make([][]byte, size), revoked: map[uint64]bool{}, inquired: map[world.Rank]bool{}}
	near, far := net.Pipe()
	go s.serve(&rankConn{rank: 0, conn: far}) // until rank 0 leaves
	go s.accept()
	return s, near
}

// accept lets the ranks of the job in until all have joined, or the server is closed.
func (s *Server) accept() {
	d := sockets.Acceptor{MaxPending: s.size + MorePending, Timeout: proofTime, Authenticate: s.authenticate,
		OnError: func(err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.acceptErr = err
		}}
	d.Serve(s.ln)
}

// authenticate returns the function that serves the rank that has connected, or nil if the caller
// is no rank of the job.
func (s *Server) authenticate(conn net.Conn) func() {
	sockets.NoteConn(conn)
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetKeepAliveConfig(keepAlive) // else only data connections would notice a lost host
	}
	session, err := Handshake(&s.secret).Answer(conn)
	if err != nil {
		return nil
	}
	rank := world.Rank(binary.LittleEndian.Uint32(session.CallerID))
	if rank < 1 || int(rank) >= s.size {
		return nil
	}
	sealed := seal.NewConn(conn, session.Send, session.Receive)
	return func() { s.serve(&rankConn{rank: rank, conn: sealed}) }
}

// serve handles the messages of a rank until its connection ends.
func (s *Server) serve(g *rankConn) {
	frames := wire.Frames{Limit: wire.MaxUp}
	for {
		m, err := wire.Receive(g.conn, &frames)
		if err == nil {
			err = s.handle(g, m)
		}
		if err != nil {
			s.lost(g, err)
			return
		}
	}
}

// handle handles one message of a rank.
func (s *Server) handle(g *rankConn, m wire.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	join, first := m.(*wire.Join)
	if first != (s.ranks[g.rank] != g) {
		return fmt.Errorf("%w: %T out of turn", wire.ErrFrame, m)
	}
	switch m := m.(type) {
	case *wire.Join:
		return s.join(g, join)
	case *wire.Card:
		if g.hasCard {
			return fmt.Errorf("%w: a second card", wire.ErrFrame)
		}
		g.hasCard = true
		s.cards[g.rank] = bytes.Clone(m.Data)
		if s.gathered++; s.gathered == s.size {
			s.broadcast(&wire.Cards{Data: s.cards})
		}
	case *wire.Revoke:
		if s.revoked[m.Comm] {
			break // another rank was first
		}
		s.revoked[m.Comm] = true
		s.broadcast(&wire.Revoked{Rank: g.rank, Comm: m.Comm, Cause: m.Cause})
	case *wire.Abort:
		s.broadcast(&wire.Terminate{Text: fmt.Sprintf("rank %d aborted the job with status %d: %s", g.rank,
			m.Code, m.Reason)})
	case *wire.Leave:
		g.left = true
		if !g.hasCard {
			s.broadcast(&wire.Died{Rank: g.rank, Text: "left before all ranks had met"})
		}
		s.reportLeft(g.rank)
	case *wire.Inquire:
		s.inquired[m.Rank] = true
		s.reportLeft(m.Rank)
	default:
		return fmt.Errorf("%w: unexpected %T", wire.ErrFrame, m)
	}
	return nil
}

// join adds a rank. When the last has joined, all are welcomed.
func (s *Server) join(g *rankConn, m *wire.Join) error {
	if s.ranks[g.rank] != nil {
		return fmt.Errorf("%w: a second rank %d", wire.ErrFrame, g.rank)
	}
	g.host, g.machine, g.segmentSocket = m.Host, m.Machine, m.SegmentSocket
	s.ranks[g.rank] = g
	g.out.conn = g.conn
	if g.rank == 0 {
		// A message may make rank 0 exit, with its server: send the message to the others first.
		g.out.before = func() { s.flush(ownDelay) }
	}
	g.out.send(s.backlog)
	if s.joined++; s.joined == s.size {
		s.ln.Close()
		s.welcome()
		s.allJoined()
	}
	return nil
}

// welcome sends every rank its number and the placement of all ranks.
func (s *Server) welcome() {
	nodes := map[[2]string]int{}
	nodeOf := make([]int, s.size)
	var hosts, sockets []string // by node
	var locals []int            // ranks by node
	for r, g := range s.ranks {
		id := [2]string{g.host, g.machine}
		if _, ok := nodes[id]; !ok {
			nodes[id] = len(hosts)
			hosts, sockets, locals = append(hosts, g.host), append(sockets, g.segmentSocket), append(locals, 0)
		}
		nodeOf[r] = nodes[id]
		locals[nodeOf[r]]++
	}
	placement, seen := wire.Runs(nodeOf), make([]world.LocalRank, len(hosts))
	for r, g := range s.ranks {
		n := nodeOf[r]
		g.out.send(wire.Append(nil, &wire.Welcome{
			Rank: world.Rank(r), Size: s.size, LocalRank: seen[n], LocalSize: locals[n], Node: n,
			JobID: s.job, Placement: placement, Hosts: hosts, SegmentSocket: sockets[n],
		}))
		seen[n]++
	}
}

// Pass forwards a message of rank 0. It returns when the others have been sent the message, or
// after ownDelay: rank 0 may exit next, with its server.
func (s *Server) Pass(m wire.Message) error {
	s.mu.Lock()
	own := s.ranks[0]
	s.mu.Unlock()
	err := s.handle(own, m)
	s.flush(ownDelay)
	return err
}

// reportLeft reports that a rank has left, if another rank has inquired.
func (s *Server) reportLeft(rank world.Rank) {
	if int(rank) < s.size && s.inquired[rank] && s.ranks[rank] != nil && s.ranks[rank].left {
		delete(s.inquired, rank)
		s.broadcast(&wire.Left{Rank: rank})
	}
}

// broadcast sends m to all ranks, also to ranks that connect later.
func (s *Server) broadcast(m wire.Message) {
	frame := wire.Append(nil, m)
	if s.joined < s.size {
		s.backlog = append(s.backlog, frame...)
	}
	for _, g := range s.ranks {
		if g != nil && !g.left {
			g.out.send(frame)
		}
	}
}

// lost handles the end of a connection.
func (s *Server) lost(g *rankConn, err error) {
	g.conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ranks[g.rank] == g && !g.left {
		g.left = true
		s.broadcast(&wire.Died{Rank: g.rank, Text: HowLost(err)})
	}
}

// GiveUp ends the job of the ranks that have joined, because others have not.
func (s *Server) GiveUp(after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var missing []int
	for r, g := range s.ranks {
		if g == nil {
			missing = append(missing, r)
		}
	}
	if len(missing) == 0 {
		return
	}
	text := fmt.Sprintf("%d of %d ranks have not come within %v, the first is rank %d", len(missing), s.size,
		after.Round(time.Second), missing[0])
	if s.acceptErr != nil {
		text += fmt.Sprintf("; rank 0 could not accept connections: %v", s.acceptErr)
	}
	s.broadcast(&wire.Terminate{Text: text})
}

// Close closes the server when rank 0 leaves. Close first sends the others Closing, so that they do
// not report the lost connection.
func (s *Server) Close() {
	s.ln.Close()
	s.mu.Lock()
	if g := s.ranks[0]; g != nil {
		g.left = true
	}
	s.broadcast(&wire.Closing{})
	s.mu.Unlock()
	s.flush(closeTime)
}

// flush waits until all ranks but rank 0 have been sent their queued messages, at most for limit.
func (s *Server) flush(limit time.Duration) {
	s.mu.Lock()
	conns := slices.Clone(s.ranks[1:])
	s.mu.Unlock()
	deadline := time.Now().Add(limit)
	for _, g := range conns {
		if g != nil {
			g.out.flush(time.Until(deadline))
		}
	}
}
