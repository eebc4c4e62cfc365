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

	"gompi/internal/boot/wire"
	"gompi/internal/route"
	"gompi/internal/seal"
	"gompi/internal/world"
)

// A spoke is the Boot of a rank that has no agent: its connection to the hub of
// rank 0.
type spoke struct {
	info    Info
	conn    net.Conn
	in      wire.Frames
	wake    atomic.Pointer[func()]
	pending atomic.Bool

	// leave says goodbye to the launcher, and abort has it end the job.
	leave func() error
	abort func(code int, reason string) error
	tell  func(wire.Message) error // tells the hub what the others are to hear

	mu      sync.Mutex
	events  []Event
	cards   [][]byte
	closing bool          // the hub has said that it ends
	ended   bool          // nothing comes any more
	changed chan struct{} // closed, and made anew, when any of these changes

	w sync.Mutex // held while writing
}

// sendTime bounds a write to a hub that does not read.
const sendTime = 5 * time.Second

// newSpoke joins the job over conn and waits until all ranks have.
func newSpoke(ctx context.Context, conn net.Conn, secret [32]byte) (*spoke, error) {
	s := &spoke{
		conn: conn, changed: make(chan struct{}),
		in:    wire.Frames{Limit: wire.MaxDown},
		leave: func() error { return nil },
		abort: func(int, string) error { return nil },
	}
	s.tell = s.send
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
	go s.listen() // until the hub is gone
	return s, nil
}

// join tells the hub where this rank is, hears who it is, and gets what the ranks of
// its host share.
func (s *spoke) join(ctx context.Context) error {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	own := openDoor()
	defer own.close()
	// Two hosts may have one name, and what is one to its kernel may be two to its network.
	if err := s.send(&wire.Join{Host: host, Machine: route.Network(), Door: own.name()}); err != nil {
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
				s.info.Unshared = s.info.share(ctx, own, w.Door)
			}
			return nil
		}
		if err := s.accept(m); err != nil {
			return err
		}
		if len(s.events) > 0 {
			return s.events[0].asError(&s.info)
		}
	}
}

func (s *spoke) welcome(w *wire.Welcome) error {
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

// listen takes what comes from the hub.
func (s *spoke) listen() {
	for {
		m, err := wire.Receive(s.conn, &s.in)
		if err == nil {
			err = s.accept(m)
		}
		if err != nil {
			s.end(err)
			return
		}
	}
}

// accept handles one message of the hub.
func (s *spoke) accept(m wire.Message) error {
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

// end notes that the hub is gone. That is news unless it was announced.
func (s *spoke) end(err error) {
	s.conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if !s.closing {
		s.died(0, howLost(err))
		s.events = append(s.events,
			Event{Kind: Gone, Rank: world.None, Text: []byte("rank 0, which passes on the news of this job, is gone: " + err.Error())})
	}
	s.signal()
}

// died notes that a rank is dead: in the segment, too, as an agent does. The caller
// holds mu.
func (s *spoke) died(rank world.Rank, how string) {
	s.events = append(s.events, Event{Kind: Died, Rank: rank, Text: []byte(how)})
	for i := range world.LocalRank(s.info.LocalSize) {
		if g := s.info.Segment; g != nil && g.WorldRank(i) == rank {
			g.SetEnded(i)
		}
	}
}

// signal wakes whoever waits for news. The caller holds mu.
func (s *spoke) signal() {
	s.pending.Store(len(s.events) > 0)
	close(s.changed)
	s.changed = make(chan struct{})
	if wake := s.wake.Load(); wake != nil {
		(*wake)()
	}
}

// Info implements Boot.
func (s *spoke) Info() *Info { return &s.info }

// Allgather implements Boot.
func (s *spoke) Allgather(ctx context.Context, mine []byte) ([][]byte, error) {
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

// FD returns -1: news is told of through SetWake.
func (s *spoke) FD() int { return -1 }

// SetWake implements Boot.
func (s *spoke) SetWake(wake func()) { s.wake.Store(&wake) }

// Pending implements Boot.
func (s *spoke) Pending() bool { return s.pending.Load() }

// Events implements Boot.
func (s *spoke) Events() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.events
	s.events = nil
	s.pending.Store(false)
	return events
}

// Await implements Boot.
func (s *spoke) Await(limit time.Duration) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	for {
		s.mu.Lock()
		ended, changed := s.ended || s.closing, s.changed
		s.mu.Unlock()
		if s.Pending() {
			return true
		}
		if ended {
			return false
		}
		select {
		case <-changed:
		case <-t.C:
			return s.Pending()
		}
	}
}

// Revoke implements Boot.
func (s *spoke) Revoke(comm uint64, cause []byte) error {
	if len(cause) > wire.MaxText {
		return fmt.Errorf("revoke: cause of %d bytes, at most %d are allowed", len(cause), wire.MaxText)
	}
	return s.tell(&wire.Revoke{Comm: comm, Cause: cause})
}

// Inquire implements Boot.
func (s *spoke) Inquire(rank world.Rank) error { return s.tell(&wire.Inquire{Rank: rank}) }

// Vote implements Boot: launchers that have no agent end a job when a rank dies.
func (s *spoke) Vote(*wire.Vote) error { return errNoVoting }

// Abort implements Boot: all ranks are told to end, and so is their launcher if
// there is a way.
func (s *spoke) Abort(code int, reason string) error {
	err := s.abort(code, reason) // first: ranks that receive the order exit with statuses of their own
	return errors.Join(err, s.tell(&wire.Abort{Code: int(int32(code)), Reason: reason}))
}

// Goodbye implements Boot.
func (s *spoke) Goodbye(bool) error {
	s.info.flight.Leave()
	s.send(&wire.Leave{}) // if the hub is gone there is nobody to be told
	if half, ok := s.conn.(*seal.Conn); ok {
		half.CloseWrite() // the hub closes it; Close here could reset it while the hub still sends
	}
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	return s.leave()
}

func (s *spoke) send(m wire.Message) error {
	s.w.Lock()
	defer s.w.Unlock()
	s.conn.SetWriteDeadline(time.Now().Add(sendTime))
	if _, err := s.conn.Write(wire.Append(nil, m)); err != nil {
		return fmt.Errorf("rank 0, which passes on the news of this job: %w", err)
	}
	return nil
}
