package boot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"gompi/internal/boot/rank0"
	"gompi/internal/boot/wire"
	"gompi/internal/seal"
	"gompi/internal/sockets"
	"gompi/internal/world"
)

// A client is the Boot of a rank without an agent: its connection to the server of rank 0.
type client struct {
	info    Info
	conn    net.Conn
	in      wire.Frames
	wake    atomic.Pointer[func()]
	pending atomic.Bool

	// leave sends goodbye to the launcher; abort makes the launcher end the job.
	leave  func() error
	abort  func(code int, reason string) error
	report func(wire.Message) error // sends the server a message for the other ranks

	mu      sync.Mutex
	events  []Event
	cards   [][]byte
	closing bool          // the server has announced its end
	ended   bool          // no more messages come
	changed chan struct{} // closed and replaced whenever one of these fields changes

	w sync.Mutex // held while writing
}

// sendTime bounds a write to a server that does not read.
const sendTime = 5 * time.Second

// newClient joins the job over conn and waits until all ranks have joined.
func newClient(ctx context.Context, conn net.Conn, secret [32]byte) (*client, error) {
	s := &client{
		conn: conn, changed: make(chan struct{}),
		in:    wire.Frames{Limit: wire.MaxDown},
		leave: func() error { return nil },
		abort: func(int, string) error { return nil },
	}
	s.report = s.send
	s.info.Secret = secret
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	err := s.join(ctx)
	if !stop() && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	go s.receive() // until the server is gone
	return s, nil
}

// join sends the server this rank's host, receives its number, and gets the shared resources of its
// host.
func (s *client) join(ctx context.Context) error {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	own := listenSegment()
	defer own.close()
	// Two hosts may have the same name, and containers of one kernel may have networks of their
	// own.
	if err := s.send(&wire.Join{Host: host, Machine: sockets.Network(), SegmentSocket: own.name()}); err != nil {
		return err
	}
	for {
		m, err := wire.Receive(s.conn, &s.in)
		if err != nil {
			return errors.New("rank 0 ended, or lost its connection, before all ranks had met")
		}
		if w, ok := m.(*wire.Welcome); ok {
			if err := s.welcome(w); err != nil {
				return err
			}
			if s.info.LocalSize > 1 {
				s.info.Unshared = s.info.share(ctx, own, w.SegmentSocket)
			}
			return nil
		}
		if err := s.handle(m); err != nil {
			return err
		}
		if len(s.events) > 0 {
			return s.events[0].asError(&s.info)
		}
	}
}

func (s *client) welcome(w *wire.Welcome) error {
	nodeOf, err := nodesOf(w)
	if err != nil {
		return err
	}
	s.info = Info{
		Rank: w.Rank, Size: w.Size, LocalRank: w.LocalRank, LocalSize: w.LocalSize,
		Node: w.Node, Nodes: len(w.Hosts), JobID: w.JobID, Secret: s.info.Secret, Hosts: w.Hosts, NodeOf: nodeOf,
	}
	return nil
}

// receive handles messages from the server until the connection ends.
func (s *client) receive() {
	for {
		m, err := wire.Receive(s.conn, &s.in)
		if err == nil {
			err = s.handle(m)
		}
		if err != nil {
			s.end(err)
			return
		}
	}
}

// handle handles one message of the server.
func (s *client) handle(m wire.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m := m.(type) {
	case *wire.Cards:
		if len(m.Data) != s.info.Size {
			return fmt.Errorf("%d cards, want %d", len(m.Data), s.info.Size)
		}
		s.cards = make([][]byte, len(m.Data))
		for i, c := range m.Data {
			s.cards[i] = bytes.Clone(c)
		}
	case *wire.Died:
		s.died(m.Rank, m.Text)
	case *wire.Left:
		s.events = append(s.events, Event{Kind: Left, Rank: m.Rank})
	case *wire.Revoked:
		s.events = append(s.events, Event{Kind: Revoked, Rank: m.Rank, Comm: m.Comm, Text: bytes.Clone(m.Cause)})
	case *wire.Terminate:
		s.events = append(s.events, Event{Kind: Terminate, Rank: world.None, Text: []byte(m.Text)})
	case *wire.Closing:
		s.closing = true
		s.events = append(s.events, Event{Kind: Left, Rank: 0})
	default:
		return fmt.Errorf("unexpected message %T from rank 0", m)
	}
	s.signal()
	return nil
}

// end notes that the server is gone. That is an event unless announced by the server.
func (s *client) end(err error) {
	s.conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if !s.closing {
		s.died(0, rank0.HowLost(err))
		s.events = append(s.events,
			Event{Kind: Gone, Rank: world.None, Text: []byte("rank 0, which passes on the news of this job, is gone: " +
				err.Error())})
	}
	s.signal()
}

// died notes that a rank is dead, also in the segment, as an agent does. The caller holds mu.
func (s *client) died(rank world.Rank, how string) {
	s.events = append(s.events, Event{Kind: Died, Rank: rank, Text: []byte(how)})
	if g := s.info.Segment; g != nil {
		if i, ok := g.LocalRank(rank); ok {
			g.SetEnded(i)
		}
	}
}

// signal wakes the waiters for events. The caller holds mu.
func (s *client) signal() {
	s.pending.Store(len(s.events) > 0)
	close(s.changed)
	s.changed = make(chan struct{})
	if wake := s.wake.Load(); wake != nil {
		(*wake)()
	}
}

// Info implements Boot.
func (s *client) Info() *Info { return &s.info }

// Allgather implements Boot.
func (s *client) Allgather(ctx context.Context, mine []byte) ([][]byte, error) {
	if len(mine) > wire.MaxCard {
		return nil, fmt.Errorf("boot allgather: card of %d bytes, at most %d are allowed", len(mine), wire.MaxCard)
	}
	if err := s.send(&wire.Card{Data: mine}); err != nil {
		return nil, err
	}
	for {
		s.mu.Lock()
		cards, events, changed := s.cards, s.events, s.changed
		s.mu.Unlock()
		switch {
		case cards != nil:
			return cards, nil
		case len(events) > 0:
			return nil, events[0].asError(&s.info)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// FD returns -1: events are announced through SetWake.
func (s *client) FD() int { return -1 }

// SetWake implements Boot.
func (s *client) SetWake(wake func()) { s.wake.Store(&wake) }

// Pending implements Boot.
func (s *client) Pending() bool { return s.pending.Load() }

// Events implements Boot.
func (s *client) Events() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.events
	s.events = nil
	s.pending.Store(false)
	return events
}

// Revoke implements Boot.
func (s *client) Revoke(comm uint64, cause []byte) error {
	if len(cause) > wire.MaxText {
		return fmt.Errorf("revoke: cause of %d bytes, at most %d are allowed", len(cause), wire.MaxText)
	}
	return s.report(&wire.Revoke{Comm: comm, Cause: cause})
}

// Inquire implements Boot.
func (s *client) Inquire(rank world.Rank) error { return s.report(&wire.Inquire{Rank: rank}) }

// Vote implements Boot: launchers that have no agent end a job when a rank dies.
func (s *client) Vote(*wire.Vote) error { return errNoVoting }

// Abort implements Boot, and ends all ranks and, if their launcher can be reached, the job.
func (s *client) Abort(code int, reason string) error {
	err := s.abort(code, reason) // first: ranks that receive the order exit with statuses of their own
	return errors.Join(err, s.report(&wire.Abort{Code: int(int32(code)), Reason: reason}))
}

// Goodbye implements Boot.
func (s *client) Goodbye(bool) error {
	s.info.flight.Leave()
	s.send(&wire.Leave{}) // without effect if the server is gone
	if half, ok := s.conn.(*seal.Conn); ok {
		half.CloseWrite() // the server closes the connection; Close here could reset it while the server still sends
	}
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	return s.leave()
}

func (s *client) send(m wire.Message) error {
	s.w.Lock()
	defer s.w.Unlock()
	s.conn.SetWriteDeadline(time.Now().Add(sendTime))
	if _, err := s.conn.Write(wire.Append(nil, m)); err != nil {
		return fmt.Errorf("rank 0, which passes on the news of this job: %w", err)
	}
	return nil
}
