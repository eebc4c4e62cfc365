package message

import (
	"gompi/internal/core/lease"
	"gompi/internal/core/payload"
	"gompi/internal/mem"
	"gompi/internal/world"
)

// mostAsked is the largest number of members of a communicator in which C polls all for messages.
const mostAsked = 32

// longSpin is the number of looks for a message that C does in the time of one poll of a driver.
const longSpin = 8

// NewLease returns a Lease by which C sends and receives. kind is the element type of all its
// messages. mix leaves some operations to Go, for tests.
func (e *Engine) NewLease(kind mem.Type, mix bool) (*lease.Lease, error) {
	l, err := lease.New(&e.Progress)
	if err != nil {
		return nil, err
	}
	e.Progress.Lock()
	defer e.Progress.Unlock()
	r := l.Record()
	r.Credit, r.Type, r.Most = int64(e.room.Credit), uint32(kind), uint32(e.cfg.Eager)
	if mix {
		r.Mix = 1
	}
	e.lease = l
	e.Progress.SetLease(l)
	return l, nil
}

// Lend lends ch, which C calls slot, for messages with a member, or with all members if member is
// Any. It also lends all communicators and peers that C has used lately.
func (ch *Channel) Lend(slot, member int) {
	e := ch.Engine
	l := e.lease
	if l == nil || slot >= lease.Channels || ch.Size() > lease.Peers || member >= ch.Size() || member == ch.Rank() {
		return
	}
	e.Progress.Lock()
	defer e.Progress.Unlock()
	if l.Begin() {
		e.Poll(world.None) // C has only looked at its own messages
		e.Progress.PassDrive()
	}
	if !e.Progress.Rest() || e.Peers.Pending() || e.Live.Pending() || e.Live.Asking() {
		return
	}
	if member >= 0 {
		l.Include(ch, slot, ch.ID, member, ch.Peer(member))
	}
	for m := 0; member < 0 && ch.Size() <= mostAsked && m < ch.Size(); m++ {
		if m != ch.Rank() {
			l.Include(ch, slot, ch.ID, m, ch.Peer(m))
		}
	}
	l.Lend(e.cfg.Eager, longSpin*e.Progress.Spin())
}

// MayLend implements lease.Channel. A lent communicator has no operation that a short message would
// have to wait for or to match.
func (ch *Channel) MayLend() bool {
	return !ch.closed && ch.Whole() && ch.q.Empty() && len(ch.probes) == 0
}

// Withdraw takes back n posted receives, whose Handles name nothing then, and reports whether it
// did: only if nothing else is under way.
func (e *Engine) Withdraw(n int, at func(i int) Handle) bool {
	e.Progress.Lock()
	defer e.Progress.Unlock()
	if !e.Progress.OnlyDeferred(n) {
		return false
	}
	for i := range n {
		if r := at(i).live(); r == nil || r.Stage != payload.Posted || r.Token != 0 || len(r.waiters) > 0 {
			return false
		}
	}
	for i := range n {
		r := at(i).live()
		r.ch.q.Cancel(&r.node)
		r.Settle()
		e.over(r)
		e.FreeRequest(r)
	}
	return true
}
