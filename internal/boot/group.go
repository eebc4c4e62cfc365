package boot

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"gompi/internal/boot/agree"
	"gompi/internal/boot/wire"
	"gompi/internal/seg"
	"gompi/internal/world"
)

// A group is a job whose ranks are goroutines of one process. Its events are one log that all
// members read, so that a member's cost does not grow with the group. The group blocks on channels
// alone, never on a lock, and so runs inside testing/synctest.
type group struct {
	members []Member
	epoch   atomic.Uint64 // length of log

	mu       sync.Mutex
	log      []Event
	cards    [][]byte
	missing  int           // number of missing cards
	complete chan struct{} // closed when cards are complete or failed is set
	failed   error
	revoked  map[uint64]bool // communicators
	inquired map[world.Rank]bool
	votes    agree.Table
}

// A Member is one rank of a Group.
type Member struct {
	group *group
	info  Info
	seen  atomic.Uint64 // length of the log that Events has returned
	wake  atomic.Pointer[func()]
	state memberState // under group.mu
}

type memberState uint8

const (
	present memberState = iota
	contributed
	left
	dead
)

// Group returns the boots of n ranks in this process, all on one node. Each is a *Member, so that
// tests can call Die.
func Group(n int) []Boot {
	g := newGroup(n, "localhost")
	boots := make([]Boot, n)
	for i := range boots {
		boots[i] = &g.members[i]
	}
	return boots
}

func newGroup(n int, host string) *group {
	id, secret := NewJob()
	hosts := []string{host}
	g := &group{members: make([]Member, n), cards: make([][]byte, n), missing: n, complete: make(chan struct{}),
		revoked: map[uint64]bool{}, inquired: map[world.Rank]bool{}, votes: agree.Table{Ranks: n}}
	for i := range g.members {
		g.members[i].group = g
		g.members[i].info = Info{
			Rank: world.Rank(i), Size: n, LocalRank: world.LocalRank(i), LocalSize: n, Nodes: 1,
			JobID: id, Secret: secret, Hosts: hosts, Recover: true,
		}
	}
	return g
}

// update calls f with the lock held, and wakes all members if f has logged an event.
func (g *group) update(f func()) {
	g.mu.Lock()
	before := len(g.log)
	f()
	news := len(g.log) > before
	g.mu.Unlock()
	if !news {
		return
	}
	for i := range g.members {
		if wake := g.members[i].wake.Load(); wake != nil {
			(*wake)()
		}
	}
}

// fail ends an Allgather that cannot succeed any more.
func (g *group) fail(err error) {
	if g.failed == nil && g.missing > 0 {
		g.failed = err
		close(g.complete)
	}
}

// Info returns the rank's Info. The Info may be changed before the rank is used.
func (m *Member) Info() *Info { return &m.info }

// Record makes the rank record its calls in a flight recorder, and is called before the rank is
// used.
func (m *Member) Record(flight *seg.Recorder) { m.info.flight = flight }

// Allgather implements Boot. All ranks share the result.
func (m *Member) Allgather(ctx context.Context, mine []byte) ([][]byte, error) {
	g := m.group
	if err := g.contribute(m, mine); err != nil {
		return nil, err
	}
	select {
	case <-g.complete:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failed != nil {
		return nil, g.failed
	}
	return g.cards, nil
}

func (g *group) contribute(m *Member, mine []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.state != present {
		return errors.New("boot allgather: called twice, or after the rank ended")
	}
	m.state = contributed
	g.cards[m.info.Rank] = append([]byte(nil), mine...)
	if g.missing--; g.missing == 0 && g.failed == nil {
		close(g.complete)
	}
	return nil
}

// FD returns -1: members are woken through SetWake.
func (m *Member) FD() int { return -1 }

// SetWake implements Boot.
func (m *Member) SetWake(wake func()) { m.wake.Store(&wake) }

// Pending implements Boot.
func (m *Member) Pending() bool { return m.group.epoch.Load() != m.seen.Load() }

// Events implements Boot.
func (m *Member) Events() []Event {
	if !m.Pending() {
		return nil
	}
	g := m.group
	g.mu.Lock()
	defer g.mu.Unlock()
	seen := m.seen.Swap(uint64(len(g.log)))
	return g.log[seen:len(g.log):len(g.log)]
}

// Revoke implements Boot.
func (m *Member) Revoke(comm uint64, cause []byte) error {
	g := m.group
	g.update(func() {
		if !g.revoked[comm] { // the lock is held: a Revoke that finds it known returns, and its rank may leave
			g.revoked[comm] = true
			g.record(Event{Kind: Revoked, Rank: m.info.Rank, Comm: comm, Text: append([]byte(nil), cause...)})
		}
	})
	return nil
}

// Inquire implements Boot.
func (m *Member) Inquire(rank world.Rank) error {
	m.group.update(func() {
		m.group.inquired[rank] = true
		m.group.reportLeft(rank)
	})
	return nil
}

// reportLeft reports that a rank has left, if another rank has inquired. g.mu is held.
func (g *group) reportLeft(rank world.Rank) {
	if g.inquired[rank] && g.members[rank].state == left {
		delete(g.inquired, rank)
		g.record(Event{Kind: Left, Rank: rank})
	}
}

// Abort implements Boot, and orders every rank to end.
func (m *Member) Abort(code int, reason string) error {
	text := fmt.Sprintf("rank %d aborted the job with status %d: %s", m.info.Rank, code, reason)
	m.group.update(func() {
		m.group.record(Event{Kind: Terminate, Rank: m.info.Rank, Text: []byte(text)})
		m.group.fail(errors.New(text))
	})
	return nil
}

// Goodbye implements Boot.
func (m *Member) Goodbye(bool) error {
	g := m.group
	g.update(func() {
		if m.state == present {
			g.fail(fmt.Errorf("rank %d left before it contributed", m.info.Rank))
		}
		if m.state != dead {
			m.state = left
		}
		g.reportLeft(m.info.Rank)
		g.decided(g.votes.Ended(m.info.Rank, false)...)
	})
	return nil
}

// Vote implements Boot.
func (m *Member) Vote(v *wire.Vote) (err error) {
	g := m.group
	g.update(func() {
		var d *agree.Decision
		if d, err = g.votes.Vote(m.info.Rank, v); err == nil { // else it is no news for the others
			g.decided(d)
		}
	})
	return err
}

// decided logs the decisions, and refuses each wanted replacement, since goroutines cannot be
// replaced. g.mu is held.
func (g *group) decided(all ...*agree.Decision) {
	for _, wants := range g.votes.Wanted() {
		w := &wants[0]
		all = append(all, g.votes.Refuse(w, fmt.Sprintf("rank %d cannot be replaced: it is a goroutine", w.Dead)))
	}
	for _, d := range all {
		if d != nil {
			g.record(Event{Kind: Agreed, Rank: world.None, Comm: d.Comm, Outcome: d.Outcome})
		}
	}
}

// Die makes all ranks believe that this rank ended without goodbye; text describes how. After
// Goodbye, or a second time, Die does nothing.
func (m *Member) Die(text string) {
	g := m.group
	g.update(func() {
		if m.state == left || m.state == dead {
			return
		}
		m.state = dead
		g.record(Event{Kind: Died, Rank: m.info.Rank, Text: []byte(text)})
		g.fail(fmt.Errorf("rank %d died: %s", m.info.Rank, text))
		g.decided(g.votes.Ended(m.info.Rank, true)...)
	})
}

// record adds e to the log. g.mu is held.
func (g *group) record(e Event) {
	g.log = append(g.log, e)
	g.epoch.Store(uint64(len(g.log)))
}
