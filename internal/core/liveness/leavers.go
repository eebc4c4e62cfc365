package liveness

import (
	"slices"

	"gompi/internal/core/peers"
	"gompi/internal/world"
	"gompi/transport"
)

// This file informs the ranks of a communicator that a member has closed it. (A rank that closes
// its last one leaves the job, which transports report.) A rank that waits for long sends Await,
// once, to the awaited members. A rank that closes the communicator sends Left to the members that
// have sent Await, or whose frames show that they wait: so closing takes no message where no rank
// waits. Left arrives after all frames of its sender on the communicator. A rank whose communicator
// was revoked sends Revoke with the reason instead: members that wait for it may not know of it.

// The leavers of a communicator, by rank.
type leavers struct {
	left      set // have closed the communicator
	asked     set // were sent Await by this rank
	inquirers set // wait for Left from this rank
}

type set map[int]bool

// add adds rank to s, and makes s if need be.
func (s *set) add(rank int) {
	if *s == nil {
		*s = set{}
	}
	(*s)[rank] = true
}

func (l *leavers) inquire(rank int) { l.inquirers.add(rank) }

// Left reports whether a member has closed c.
func (c *Comm) Left(rank int) bool { return len(c.leavers.left) > 0 && c.leavers.left[rank] }

// Inquire notes that a member waits for this rank's Left.
func (c *Comm) Inquire(rank int) { c.leavers.inquire(rank) }

// Gone returns why a member will not send or receive any more, nil if the member may.
func (c *Comm) Gone(rank int) error {
	if c.Left(rank) {
		return ErrLeft
	}
	return c.ranks.Lost(c.World(rank))
}

// HasLeft reports whether a member has left and so will send no more frames.
func (c *Comm) HasLeft(member int) bool {
	left, w := c.ranks.cfg.Left, c.World(member)
	return c.Gone(member) != nil || !c.ranks.cfg.Peers.Peer(w).Connected() || left != nil && left(w)
}

// AnyLeft returns a member that has left, nil if there is none.
func (c *Comm) AnyLeft() *peers.Peer {
	for r := range c.size {
		w := c.World(r)
		if w != c.ranks.cfg.Rank && (c.Gone(r) != nil || c.ranks.cfg.Left != nil && c.ranks.cfg.Left(w)) {
			return c.ranks.cfg.Peers.Peer(w)
		}
	}
	return nil
}

// Alone reports whether there were other members and all have left.
func (c *Comm) Alone() bool {
	if c.ranks.lost == 0 && len(c.leavers.left) == 0 || c.size == 1 {
		return false
	}
	for r := range c.size {
		if r != c.rank && c.Gone(r) == nil {
			return false
		}
	}
	return true
}

// awaited returns the members for which operations wait; the caller gives the list back to c.waits.
func (c *Comm) awaited() (named []int, anyMember bool) {
	named, c.waits = c.waits, nil // a frame that is sent meanwhile may lead here again
	return c.ops.Awaited(named)
}

// awaits reports whether something waits for a member.
func (c *Comm) awaits(member int) bool {
	named, anyMember := c.awaited()
	c.waits = named[:0]
	return anyMember || slices.Contains(named, member)
}

// askAwaited asks the members that this rank waits for to notify this rank when they close c.
func (c *Comm) askAwaited() {
	named, anyMember := c.awaited()
	for _, src := range named {
		if src != c.rank && c.Gone(src) == nil {
			c.sendAwait(src)
		}
	}
	c.waits = named[:0]
	if !anyMember {
		return
	}
	// A receive from any member fails when all have left. So it is enough to ask one member that
	// has not left, and another one each time an asked member leaves: news of a departure takes up
	// to ReasonTimeout, and meanwhile the other members have been asked.
	left, asked := 0, 0
	for src := 0; src < c.size && asked <= left; src++ {
		switch {
		case src == c.rank:
		case c.Gone(src) != nil:
			left++
		default:
			c.sendAwait(src)
			asked++
		}
	}
}

// sendAwait asks a member, once, to notify this rank when the member closes c.
func (c *Comm) sendAwait(member int) {
	if p := c.ranks.cfg.Peers.Peer(c.World(member)); !c.leavers.asked[member] && c.Usable(p) == nil {
		c.leavers.asked.add(member)
		p.SendHeader(transport.Header{Kind: transport.Await, Comm: c.ID})
	}
}

// sendLeft sends Left to the members that wait for it. With its last communicator a rank leaves the
// job: then its transports notify all peers. If c was revoked, all members with which this rank has
// exchanged frames get the reason: a member without it may begin to wait later.
func (c *Comm) sendLeft() {
	k := c.ranks
	switch {
	case c.reason != nil:
		k.sendReason(c.ID, c.reason, c.Has)
	case len(k.comms) > 0:
		for rank := range c.leavers.inquirers {
			sendEnd(k.cfg.Peers.Peer(c.World(rank)), c.ID, nil)
		}
	}
}

// AnswerEnd answers a frame for a communicator that is closed here, or broken, if its sender waits
// for an answer.
func (k *Ranks) AnswerEnd(p *peers.Peer, h *transport.Header) {
	switch h.Kind {
	case transport.RTS, transport.Coll, transport.Ready, transport.Call, transport.Await:
		c, why := k.comms[h.Comm], k.past.why(h.Comm)
		if c != nil {
			why = c.reason
		}
		if c == nil || why != nil {
			sendEnd(p, h.Comm, why)
		}
	}
}

// LeftComm handles a Left frame: p has closed a communicator.
func (k *Ranks) LeftComm(p *peers.Peer, comm uint64) {
	c := k.comms[comm]
	if c == nil || c.err != nil {
		return
	}
	if src := c.Member(p.Rank); src >= 0 && src != c.rank {
		c.leavers.left.add(src)
		c.depart(p)
	}
}

// Stalled finds out whether the ranks waited for have left.
func (k *Ranks) Stalled() {
	if k.cfg.Left != nil {
		k.dismissLeft()
	}
	for _, c := range k.comms {
		c.askAwaited()
	}
}

// dismissLeft finds in the host segment the ranks that have left without a message to this rank,
// because they never connected to it. It first reads their last frames.
func (k *Ranks) dismissLeft() {
	var left []world.Rank
	for _, c := range k.comms {
		named, anyMember := c.awaited()
		for src := 0; anyMember && src < c.size; src++ {
			named = append(named, src)
		}
		for _, src := range named {
			if w := c.World(src); w != k.cfg.Rank && k.Lost(w) == nil && k.cfg.Left(w) {
				left = append(left, w)
			}
		}
		c.waits = named[:0]
	}
	if left == nil {
		return
	}
	k.cfg.Progress.Drain()
	for _, w := range left {
		k.TransportLost(w, transport.ErrGone)
	}
}
