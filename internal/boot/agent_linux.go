package boot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"gompi/internal/boot/wire"
	"gompi/internal/env"
	"gompi/internal/seg"
	"gompi/internal/world"
)

// An agentConn is a rank's end of the socket to its agent. The engine polls the descriptor with its
// others, so an agentConn starts no goroutine and uses no netpoller, unless the agent asks for a
// watch.
type agentConn struct {
	info Info
	fd   int
	seen atomic.Uint64 // the segment's epoch at the last Events

	mu     sync.Mutex
	in     wire.Frames
	out    []byte // bytes that the socket has not taken
	events []Event
	cards  [][]byte
	gone   bool
	wake   func()

	watched bool // a goroutine reads the socket, too
}

// maxSpans bounds the spans of an agreement's members, so that a vote fits wire.MaxUp.
const maxSpans = 6000

// maxOut bounds the bytes queued for an agent that does not read.
const maxOut = 256 << 10

// newAgentConn takes the rank's place in the segment and reads the agent's welcome.
func newAgentConn(fd int, local world.LocalRank, s *seg.Segment, bells []int) (*agentConn, error) {
	if int(local) >= s.Ranks() {
		return nil, fmt.Errorf("%s=%d: want less than %d, the ranks of this host's segment", env.LocalRank,
			local, s.Ranks())
	}
	// Before the welcome: a second process in this place would wait for a welcome in vain.
	flight := s.Rank(local)
	if !flight.Join() {
		if flight.Late() {
			return nil, fmt.Errorf("the process that gompirun started for rank %d has ended already: have what starts this program wait for it (setsid -w; no & behind it)", s.WorldRank(local))
		}
		if isAbove(int(s.PID(local))) {
			tellOfChild(s, local)
			return nil, errChild
		}
		return nil, fmt.Errorf("rank %d of this job has been used by process %d: a rank joins its job once",
			s.WorldRank(local), s.PID(local))
	}
	l := &agentConn{fd: fd, in: wire.Frames{Limit: wire.MaxDown}}
	m, err := l.receive(nil)
	if err != nil {
		return nil, err
	}
	w, ok := m.(*wire.Welcome)
	if !ok {
		return nil, fmt.Errorf("agent's first message is %T, want welcome", m)
	}
	if err := l.welcome(w, s, bells); err != nil {
		return nil, err
	}
	l.watched = w.Watch
	l.info.flight = flight
	return l, nil
}

// welcome checks w and turns it into Info.
func (l *agentConn) welcome(w *wire.Welcome, s *seg.Segment, bells []int) error {
	if int(w.Rank) >= w.Size+w.Spares*len(w.Hosts) || int(w.LocalRank) >= w.LocalSize || w.LocalSize != s.Ranks() ||
		w.LocalSize != len(bells) ||
		s.WorldRank(w.LocalRank) != w.Rank {
		return fmt.Errorf("agent's welcome as rank %d of %d, %d of %d on this host, does not fit a segment of %d ranks with %d doorbells",
			w.Rank, w.Size, w.LocalRank, w.LocalSize, s.Ranks(), len(bells))
	}
	l.info = Info{
		Rank: w.Rank, Size: w.Size, LocalRank: w.LocalRank, LocalSize: w.LocalSize,
		Node: w.Node, Nodes: len(w.Hosts), Program: w.Program, JobID: w.JobID, Secret: w.Secret, Hosts: w.Hosts,
		Segment: s, Bells: bells, Recover: w.Recover, Spares: w.Spares,
	}
	if w.Invited {
		l.info.Invite = &wire.Invite{Comm: w.Invite.Comm, Seq: w.Invite.Seq, Members: slices.Clone(w.Invite.Members)}
	}
	var err error
	l.info.NodeOf, err = nodesOf(w)
	return err
}

func (l *agentConn) Info() *Info { return &l.info }

func (l *agentConn) FD() int { return l.fd }

func (l *agentConn) SetWake(wake func()) {
	l.mu.Lock()
	l.wake = wake
	l.mu.Unlock()
}

func (l *agentConn) Pending() bool { return l.info.Segment.Epoch() != l.seen.Load() }

func (l *agentConn) Allgather(ctx context.Context, mine []byte) ([][]byte, error) {
	if len(mine) > wire.MaxCard {
		return nil, fmt.Errorf("boot allgather: card of %d bytes, at most %d are allowed", len(mine), wire.MaxCard)
	}
	stop, release, err := stopOn(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out = wire.Append(l.out, &wire.Card{Data: mine})
	for l.cards == nil {
		m, err := l.receive(stop)
		if ctx.Err() != nil {
			return nil, l.notAll(context.Cause(ctx))
		}
		if err != nil {
			return nil, err
		}
		if err := l.handle(m); err != nil {
			return nil, err
		}
		if len(l.events) > 0 {
			return nil, l.events[0].asError(&l.info)
		}
	}
	cards := l.cards
	if len(cards) != l.info.Places() {
		return nil, fmt.Errorf("boot allgather: %d cards, want %d", len(cards), l.info.Places())
	}
	if l.watched {
		l.watch()
	}
	return cards, nil
}

// notAll returns the error of an Allgather that ended for a cause before all ranks had come, with
// the missing ranks of this host.
func (l *agentConn) notAll(cause error) error {
	var missing []string
	for i := range l.info.LocalSize {
		if local := world.LocalRank(i); l.info.Segment.State(local) == seg.Starting {
			missing = append(missing, fmt.Sprint(l.info.Segment.WorldRank(local)))
		}
	}
	switch {
	case len(missing) > 0:
		return fmt.Errorf("%w: rank %s (host %s) has not come", cause, strings.Join(missing, ", "),
			l.info.Host(l.info.Rank))
	case l.info.Nodes > 1:
		return fmt.Errorf("%w: a rank of another host has not come", cause)
	}
	return cause
}

// Events reads all messages that have arrived, without blocking.
func (l *agentConn) Events() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The agent writes to the socket first and bumps the epoch then: the messages of the epoch seen
	// here are in the socket.
	epoch := l.info.Segment.Epoch()
	l.pull()
	l.seen.Store(epoch)
	events := l.events
	l.events = nil
	return events
}

// pull reads all messages that have arrived.
func (l *agentConn) pull() {
	l.flush()
	for !l.gone {
		n, err := unix.Read(l.fd, l.in.ReadBuffer(false))
		if err == unix.EINTR {
			continue
		}
		if err == unix.EAGAIN {
			break
		}
		if err != nil || n == 0 {
			l.lose("it closed its channel")
			break
		}
		l.in.Filled(n)
		l.drain()
	}
}

// drain handles all whole frames.
func (l *agentConn) drain() {
	for {
		m, ok, err := wire.Next(&l.in)
		if err == nil && !ok {
			return
		}
		if err == nil {
			err = l.handle(m)
		}
		if err != nil {
			l.lose(err.Error())
			return
		}
	}
}

func (l *agentConn) lose(how string) {
	l.gone = true
	l.events = append(l.events, Event{Kind: Gone, Rank: world.None, Text: []byte(how)})
}

// handle handles one message from the agent.
func (l *agentConn) handle(m wire.Message) error {
	switch m := m.(type) {
	case *wire.Cards:
		l.cards = m.Data
		l.in.Keep()
	case *wire.Died:
		l.events = append(l.events, Event{Kind: Died, Rank: m.Rank, Text: []byte(m.Text)})
	case *wire.Left:
		l.events = append(l.events, Event{Kind: Left, Rank: m.Rank})
	case *wire.Revoked:
		l.events = append(l.events, Event{Kind: Revoked, Rank: m.Rank, Comm: m.Comm,
			Text: append([]byte(nil), m.Cause...)})
	case *wire.Outcome:
		l.events = append(l.events, Event{Kind: Agreed, Rank: world.None, Comm: m.Comm, Outcome: m.Clone()})
	case *wire.Describe:
		l.sendStacks()
	case *wire.Terminate:
		l.events = append(l.events, Event{Kind: Terminate, Rank: world.None, Text: []byte(m.Text)})
	default:
		return fmt.Errorf("unexpected message %T from the agent", m)
	}
	return nil
}

func (l *agentConn) Revoke(comm uint64, cause []byte) error {
	if len(cause) > wire.MaxText {
		return fmt.Errorf("revoke: cause of %d bytes, at most %d are allowed", len(cause), wire.MaxText)
	}
	return l.send(&wire.Revoke{Comm: comm, Cause: cause})
}

func (l *agentConn) Inquire(rank world.Rank) error { return l.send(&wire.Inquire{Rank: rank}) }

// Detached implements Detacher.
func (l *agentConn) Detached(rank world.Rank) error { return l.send(&wire.Detached{Rank: rank}) }

func (l *agentConn) Vote(v *wire.Vote) error {
	switch {
	case !l.info.Recover && v.Kind == wire.Restore:
		return errNoVoting
	case len(v.Members) > maxSpans:
		return fmt.Errorf("an agreement of ranks in %d rows: want %d at most", len(v.Members), maxSpans)
	}
	return l.send(v)
}

func (l *agentConn) Abort(code int, reason string) error {
	return l.send(&wire.Abort{Code: int(int32(code)), Reason: reason})
}

// Goodbye sets the rank's state in the segment. Only if aloud is set, Goodbye wakes the agent,
// which otherwise reads the state when it reaps the process.
func (l *agentConn) Goodbye(aloud bool) error {
	if aloud {
		l.send(&wire.Leave{}) // without effect if the agent is gone
	}
	l.info.flight.Leave()
	return nil
}

func (l *agentConn) send(m wire.Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return errGone
	}
	if len(l.out) > maxOut {
		return errors.New("the agent does not read")
	}
	l.out = wire.Append(l.out, m)
	l.flush()
	return nil
}

// flush writes as much as the socket takes; the rest waits for the next call. A broken socket shows
// at a read.
func (l *agentConn) flush() {
	for len(l.out) > 0 {
		n, err := unix.SendmsgN(l.fd, l.out, nil, nil, unix.MSG_NOSIGNAL)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return
		}
		l.out = l.out[n:]
	}
	l.out = nil
}

// receive blocks until the next message has arrived, and reads nothing beyond: later messages must
// keep the descriptor readable. receive returns an error when the launcher is gone or stop is
// readable.
func (l *agentConn) receive(stop *stopper) (wire.Message, error) {
	for {
		if m, ok, err := wire.Next(&l.in); ok || err != nil {
			return m, err
		}
		l.flush()
		n, err := unix.Read(l.fd, l.in.ReadBuffer(true))
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			if err := stop.wait(l.fd, len(l.out) > 0); err != nil {
				return nil, err
			}
		case err != nil || n == 0:
			return nil, errGone
		default:
			l.in.Filled(n)
		}
	}
}
