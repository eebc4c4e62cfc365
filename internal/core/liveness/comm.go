package liveness

import (
	"errors"
	"fmt"
	"sync/atomic"

	"gompi/internal/calls"
	"gompi/internal/core/peers"
	"gompi/internal/core/record"
	"gompi/internal/mem"
	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/transport"
)

// Operations are the operations of a communicator. All methods are called with the lock held.
type Operations interface {
	// Fail ends all of them, because the communicator is broken or closed.
	Fail(err error)
	// Depart ends operations that wait for a member that left in good order; all: no other is left.
	Depart(p *peers.Peer, all bool)
	// Awaited appends the members for which operations wait to named; anyMember reports that some
	// operation waits for any member.
	Awaited(named []int) (to []int, anyMember bool)
	// Unanswered yields the members whose messages or calls have arrived and are not yet answered.
	Unanswered(yield func(member int) bool)
}

// A Comm is a rank's knowledge of the members of a communicator: which ranks they are, which have
// left, and why it is broken. Ranks are ranks of the communicator unless stated otherwise.
type Comm struct {
	ID uint64

	ranks   *Ranks
	ops     Operations
	members []world.Rank         // by rank; nil: all, in order
	index   map[world.Rank]int32 // the inverse; nil with members
	// each member's counter when the communicator was created, by rank; nil if not exchanged
	counters []uint32
	rank     int
	size     int
	leavers  leavers
	err      error       // why c is broken or closed
	reason   []byte      // why c was revoked, as Revoke frames carry the reason; nil if not revoked
	broken   atomic.Bool // err is not nil
	breaking bool        // BreakSoon was called
	waits    []int       // room for awaited
}

// Open makes c the communicator with a context id among the given world ranks, nil for all.
// counters are the members' counters when the communicator was created, nil if they did not
// exchange them. The caller then calls CatchUp and DismissLost.
func (k *Ranks) Open(c *Comm, ops Operations, id uint64, members []world.Rank, counters []uint32) {
	c.ID, c.ranks, c.ops, c.members, c.counters = id, k, ops, members, counters
	c.rank, c.size = int(k.cfg.Rank), k.cfg.Size
	if members != nil {
		c.size = len(members)
		c.index = make(map[world.Rank]int32, len(members))
		for r, w := range members {
			c.index[w] = int32(r)
		}
		c.rank = int(c.index[k.cfg.Rank])
	}
	k.comms[id] = c
}

// Rank returns this rank's number in c.
func (c *Comm) Rank() int { return c.rank }

// Size returns the number of members.
func (c *Comm) Size() int { return c.size }

// World returns the world rank of a member.
func (c *Comm) World(rank int) world.Rank {
	if c.members == nil {
		return world.Rank(rank)
	}
	return c.members[rank]
}

// Host returns the name of a member's host.
func (c *Comm) Host(rank int) string { return c.ranks.cfg.Host(c.World(rank)) }

// Has reports whether a world rank is a member.
func (c *Comm) Has(rank world.Rank) bool { return c.Member(rank) >= 0 }

// Member returns the rank of a world rank, -1 if that rank is no member.
func (c *Comm) Member(rank world.Rank) int {
	if c.members == nil {
		return int(rank)
	}
	if r, ok := c.index[rank]; ok {
		return int(r)
	}
	return -1
}

// Err returns why c is broken, nil while c works. Without an error, Err takes no lock.
func (c *Comm) Err() error {
	if !c.broken.Load() {
		return nil
	}
	return c.why()
}

func (c *Comm) why() error {
	c.ranks.cfg.Progress.Lock()
	defer c.ranks.cfg.Progress.Unlock()
	return c.err
}

// BrokenWord returns a word that is true when Err is not nil, to be loaded without a lock.
func (c *Comm) BrokenWord() *atomic.Bool { return &c.broken }

// Broken is Err with the lock held.
func (c *Comm) Broken() error { return c.err }

// Breaking reports whether BreakSoon was called.
func (c *Comm) Breaking() bool { return c.breaking }

// Break breaks c here and notifies the other members of the reason. Break takes the lock.
func (c *Comm) Break(cause string) {
	c.ranks.cfg.Progress.Lock()
	defer c.ranks.cfg.Progress.Exit()
	c.BreakUp(Reason{Rank: c.ranks.cfg.Rank, Cause: cause})
}

// BreakUp breaks c because of v, and notifies the others.
func (c *Comm) BreakUp(v Reason) {
	if c.err != nil {
		return
	}
	c.failBecause(v)
	if c.size == 1 {
		return
	}
	// The launcher is notified first: a notified member may exit at once, and the other members
	// must not learn of its exit before the reason.
	c.ranks.report(c.ID, c.reason)
	c.ranks.sendReason(c.ID, c.reason, c.Has)
}

// BreakSoon breaks c, but first gives the launcher time to send a better reason, or the news that
// why needs: until known returns true.
func (c *Comm) BreakSoon(known func() bool, why func() Reason) {
	if c.breaking || c.err != nil {
		return
	}
	c.breaking = true
	c.ranks.after(func() bool { return c.err != nil || known() }, func() { c.BreakUp(why()) })
}

// AwaitReason waits for the launcher's news of why c is broken, as it may be after a member left
// early. The caller is a goroutine inside a call, of the program's unless quiet.
func (c *Comm) AwaitReason(quiet bool) {
	var w record.Wait
	w.Init(c.ranks.flight, inCollective{})
	w.Apart = quiet
	c.ranks.await(&w.Waiter, func() bool { return c.err != nil })
}

// inCollective describes, for the flight recorder, a wait in a collective with its own record.
type inCollective struct{}

func (inCollective) Describe() (seg.Call, seg.Ticket, bool) {
	return seg.Call{Kind: calls.Wait, Peer: -1}, 0, false
}
func (inCollective) Stalled() {}

// fail breaks c: all its operations end with err.
func (c *Comm) fail(err error) {
	if c.err != nil {
		return
	}
	for member := range c.ops.Unanswered {
		c.leavers.inquire(member)
	}
	c.err = err
	c.broken.Store(true)
	c.ops.Fail(err)
}

// failBecause is fail because c was revoked.
func (c *Comm) failBecause(v Reason) {
	if c.err == nil {
		c.reason = v.Encode()
		c.fail(c.revokeError(v))
	}
}

// revokeError returns v as the error that operations on c return.
func (c *Comm) revokeError(v Reason) error {
	if v.Mismatch != nil {
		return v.Mismatch
	}
	host := c.ranks.cfg.Host(v.Rank)
	r := c.Member(v.Rank)
	if r < 0 { // that rank broke the communicator from which this one was made
		return &RevokedError{Rank: r, Host: host, Died: v.Died,
			Cause: fmt.Sprintf("world rank %d (host %s) %s", v.Rank, host, v.Cause)}
	}
	return &RevokedError{Rank: r, Host: host, Cause: v.Cause, Died: v.Died}
}

// Whole reports whether c works and no member is known to have left or to be lost.
func (c *Comm) Whole() bool {
	return c.err == nil && !c.breaking && len(c.leavers.left) == 0 && c.ranks.lost == 0
}

// Dead returns the members that the launcher has reported dead, in the order of its reports,
// which is the same on all ranks. Dead takes the lock.
func (c *Comm) Dead() (members []int) {
	k := c.ranks
	k.cfg.Progress.Lock()
	defer k.cfg.Progress.Exit()
	if k.Pending() {
		k.HandleEvents()
	}
	for _, w := range k.dead {
		if r := c.Member(w); r >= 0 && r < c.size {
			members = append(members, r)
		}
	}
	return members
}

// Usable returns why a member cannot be used on c, nil if usable.
func (c *Comm) Usable(p *peers.Peer) error {
	switch {
	case c.err != nil:
		return c.err
	case p.Lost != nil:
		return fmt.Errorf("%w", p.Lost)
	case c.Left(c.Member(p.Rank)):
		return ErrLeft
	case !p.Connected():
		return fmt.Errorf("no transport reaches world rank %d (host %s)", p.Rank, c.ranks.cfg.Host(p.Rank))
	}
	return nil
}

// DismissLost ends the operations that wait for ranks lost before c was created.
func (c *Comm) DismissLost() {
	for rank, f := range c.ranks.fates {
		if f.lost != nil {
			c.dismiss(c.ranks.cfg.Peers.Peer(rank), false)
		}
	}
}

// dismiss ends operations that wait for a lost peer. If it left in good order, only receives and
// collectives that need it fail. If it crashed or was cut off, the communicator breaks for all.
func (c *Comm) dismiss(p *peers.Peer, known bool) {
	if !c.Has(p.Rank) || c.err != nil || p.Rank == c.ranks.cfg.Rank {
		return
	}
	if errors.Is(p.Lost, ErrLeft) {
		c.depart(p)
		return
	}
	v := Reason{Rank: p.Rank, Cause: "is lost: " + p.Lost.Error(), Died: true}
	if known {
		c.failBecause(v)
	} else {
		c.BreakUp(v)
	}
}

// depart ends operations on c that wait for a member that has left in good order.
func (c *Comm) depart(p *peers.Peer) {
	c.ops.Depart(p, c.Alone())
	c.askAwaited()
}

// Close removes c, which fails with ErrClosed, and notifies the members that wait for this rank.
func (c *Comm) Close() {
	c.fail(ErrClosed)
	delete(c.ranks.comms, c.ID)
	c.ranks.past.close(c.ID, c.reason)
	c.sendLeft()
}

// RevokedBy handles a peer's Revoke frame, which may come before the launcher's news. This rank may
// exit because of the revocation, and the other ranks must not learn of its exit before the reason.
func (k *Ranks) RevokedBy(p *peers.Peer, comm uint64, why []byte) {
	if c := k.comms[comm]; c != nil && c.err == nil {
		k.report(comm, why)
	}
	k.revoked(p.Rank, comm, why)
}

// revoke breaks a communicator because another rank did.
func (k *Ranks) revoke(comm uint64, why Reason) {
	switch c := k.named(comm); {
	case c == nil:
		if k.past.revoke(comm, why) {
			k.cfg.Messages.Forget(comm)
		}
	case c.ID == comm:
		c.failBecause(why)
	default: // a member has withdrawn, which does not know the id
		c.BreakUp(why)
	}
}

// sendReason sends the reason why a communicator broke to the members with which this rank has
// exchanged frames: its goodbye could arrive before the launcher's news.
func (k *Ranks) sendReason(id uint64, text []byte, member func(world.Rank) bool) {
	for p := range k.cfg.Peers.All {
		if member(p.Rank) {
			sendEnd(p, id, text)
		}
	}
}

// sendEnd notifies p that a communicator was closed here, or revoked if there is a reason.
func sendEnd(p *peers.Peer, comm uint64, why []byte) {
	switch {
	case !p.Reachable():
	case why == nil:
		p.SendHeader(transport.Header{Kind: transport.Left, Comm: comm})
	default:
		p.Post(p.Frame(transport.Header{Kind: transport.Revoke, Comm: comm}), mem.Bytes(why), 0)
	}
}
