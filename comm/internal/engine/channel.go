package engine

import (
	"fmt"
	"sync"
	"sync/atomic"

	"gompi/comm/internal/liveness"
	"gompi/comm/internal/match"
	"gompi/comm/internal/peers"
	"gompi/internal/world"
	"gompi/transport"
)

// A Channel is the traffic of one communicator: its point-to-point queues and
// its collectives. Ranks are those of the communicator unless said otherwise.
type Channel struct {
	e           *Engine
	ID          uint64
	members     []world.Rank         // by rank; nil: all, in order
	index       map[world.Rank]int32 // the inverse; nil with members
	counters    []uint32             // that the members have told to make it, by rank; nil if they have told none
	rank        int
	size        int
	q           match.Queues[Request, Kept]
	probes      []*waiter    // of blocking probes
	sought      map[int]bool // what probes that do not wait have looked for in vain since the last Stalled
	collectives Collectives
	waits       []int // room for awaited
	leavers     liveness.Leavers
	copies      sync.WaitGroup // that run
	err         error          // why it is broken or closed
	reason      []byte         // why it was revoked, as Revoke frames carry it; nil if it was not
	broken      atomic.Bool    // err is not nil
	breaking    bool           // BreakSoon was called
}

// NextID returns a context id that no other communicator of the job has: the
// world rank of the communicator's first member and a counter of that rank's.
func NextID(first world.Rank, counter uint32) uint64 {
	return uint64(first)<<32 | uint64(counter)
}

// MakerID returns the context id by which members of the communicator with the given one make
// communicators among themselves. There is no world rank with such a bit.
func MakerID(id uint64) uint64 { return id | 1<<62 }

// Counter returns the counter for the next context id with this rank as first
// member, and advances it.
func (e *Engine) Counter() uint32 {
	e.progress.Lock()
	defer e.progress.Unlock()
	e.next++
	return e.next
}

// Open makes the Channel with the given context id among the given world ranks,
// nil for all. It handles the frames that arrived for it before.
func (e *Engine) Open(id uint64, members []world.Rank) *Channel { return e.openAs(id, members, nil) }

func (e *Engine) openAs(id uint64, members []world.Rank, counters []uint32) *Channel {
	e.progress.Lock()
	defer e.progress.Exit()
	ch := &Channel{e: e, ID: id, members: members, counters: counters, rank: int(e.cfg.Rank), size: e.cfg.Size}
	if members != nil {
		ch.size = len(members)
		ch.index = make(map[world.Rank]int32, len(members))
		for r, w := range members {
			ch.index[w] = int32(r)
		}
		ch.rank = int(ch.index[e.cfg.Rank])
	}
	ch.collectives = e.cfg.Collectives(ch)
	e.channels[id] = ch
	if v, ok := ch.withdrawn(); ok {
		ch.failBecause(v)
	}
	for _, m := range e.early[id] {
		ch.adopt(m)
	}
	delete(e.early, id)
	ch.dismissLost()
	return ch
}

// channel returns the Channel with a context id, nil if there is none.
func (e *Engine) channel(id uint64) *Channel {
	if ch := e.latest; ch != nil && ch.ID == id {
		return ch
	}
	ch := e.channels[id]
	if ch != nil {
		e.latest = ch
	}
	return ch
}

// Close removes the Channel. Operations under way fail with ErrClosed, and nothing touches
// their memory when it returns. So it waits for copies that devices are making, however long
// they take: they cannot be withdrawn, and a device that hangs holds up Close.
func (ch *Channel) Close() {
	ch.forget()
	ch.copies.Wait()
}

func (ch *Channel) forget() {
	ch.e.progress.Lock()
	defer ch.e.progress.Exit()
	ch.fail(liveness.ErrClosed)
	delete(ch.e.channels, ch.ID)
	ch.e.latest = nil
	ch.e.past.Close(ch.ID, ch.reason)
	ch.tellLeft()
}

// Err returns why the Channel is broken, nil while it works, and then without a lock.
func (ch *Channel) Err() error {
	if !ch.broken.Load() {
		return nil
	}
	return ch.why()
}

func (ch *Channel) why() error {
	ch.e.progress.Lock()
	defer ch.e.progress.Unlock()
	return ch.err
}

// Rank returns this rank's number in the Channel.
func (ch *Channel) Rank() int { return ch.rank }

// Size returns the number of members.
func (ch *Channel) Size() int { return ch.size }

// World returns the world rank of a member.
func (ch *Channel) World(rank int) world.Rank {
	if ch.members == nil {
		return world.Rank(rank)
	}
	return ch.members[rank]
}

// Host returns the name of a member's host.
func (ch *Channel) Host(rank int) string { return ch.e.cfg.Host(ch.World(rank)) }

// Has reports whether a world rank is a member.
func (ch *Channel) Has(rank world.Rank) bool { return ch.Member(rank) >= 0 }

// Member returns the rank of a world rank, -1 if it is none of the members.
func (ch *Channel) Member(rank world.Rank) int {
	if ch.members == nil {
		return int(rank)
	}
	if r, ok := ch.index[rank]; ok {
		return int(r)
	}
	return -1
}

// fail breaks the Channel: all its operations end with err.
func (ch *Channel) fail(err error) {
	if ch.err != nil {
		return
	}
	ch.noteInquirers()
	ch.err = err
	ch.broken.Store(true)
	e := ch.e
	ch.cancelPosted(err)
	for n := range ch.q.Arrived() {
		ch.q.Remove(n)
		e.drop(n.Val)
	}
	for _, w := range ch.probes {
		e.rouse(w)
	}
	ch.probes = nil
	for i := range e.slots.list {
		switch s := e.slots.list[i]; {
		case s.r != nil && s.r.ch == ch:
			e.abandon(s.r, err)
		case s.m != nil && s.m.taken != nil && s.m.taken.ch == ch:
			e.finish(s.m.taken, err)
			e.drop(s.m)
		}
	}
	ch.collectives.Fail(err)
}

// cancelPosted ends every receive that has no message yet.
func (ch *Channel) cancelPosted(err error) {
	for n := range ch.q.Posted() {
		ch.q.Cancel(n)
		ch.e.finish(n.Val, err)
	}
}

// abandon ends a request whose buffer a transport may hold.
func (e *Engine) abandon(r *Request, err error) {
	r.GiveUp(r.Peer != nil && e.live.Ended(r.Peer.Rank))
	e.finish(r, err)
}

// drop discards a message that no receive will take, and returns its credit.
func (e *Engine) drop(m *Kept) {
	if s, _ := e.slots.get(m.Offer); m.local && s != nil {
		e.abandon(s, s.ch.err)
	}
	if m.Kind == transport.Eager && m.Peer != nil && !m.paid { // those of a round die with their Channel
		e.returnCredit(m.Peer, m.Size)
	}
	e.dropFetch(m)
	if m.token != 0 && !m.ready {
		m.Peer.Forget(m.token)
	}
	e.freeMessage(m)
}

// Break breaks the Channel here and tells the other members why.
func (ch *Channel) Break(cause string) {
	ch.e.progress.Lock()
	defer ch.e.progress.Exit()
	ch.BreakUp(liveness.Reason{Rank: ch.e.cfg.Rank, Cause: cause})
}

// BreakUp breaks the Channel because of v, and tells the others, with the lock held.
func (ch *Channel) BreakUp(v liveness.Reason) {
	if ch.err != nil {
		return
	}
	ch.failBecause(v)
	if ch.size == 1 {
		return
	}
	// The launcher is told first: a member that is told by this rank may end at once, and the
	// others must not hear of that end first.
	ch.e.live.Report(ch.ID, ch.reason)
	ch.e.tell(ch.ID, ch.reason, ch.Has)
}

// BreakSoon breaks the Channel, but first gives the launcher time to tell a better reason, or what
// why needs to know: until told reports that it has.
func (ch *Channel) BreakSoon(told func() bool, why func() liveness.Reason) {
	if ch.breaking || ch.err != nil {
		return
	}
	ch.breaking = true
	ch.e.live.After(func() bool { return ch.err != nil || told() }, func() { ch.BreakUp(why()) })
}

// AwaitReason waits for the launcher's news of why ch is broken, since it may be broken where a
// member has left early. It is for a goroutine that is inside a call.
func (ch *Channel) AwaitReason() {
	w := ch.e.newWaiter()
	ch.e.live.Await(&w.Waiter, func() bool { return ch.err != nil })
	ch.e.freeWaiter(w)
}

// failBecause is fail because ch was revoked.
func (ch *Channel) failBecause(v liveness.Reason) {
	if ch.err == nil {
		ch.reason = v.Encode()
		ch.fail(ch.revokeError(v))
	}
}

// revokeError returns v as the error that operations on ch return.
func (ch *Channel) revokeError(v liveness.Reason) error {
	if v.Mismatch != nil {
		return v.Mismatch
	}
	host := ch.e.cfg.Host(v.Rank)
	r := ch.Member(v.Rank)
	if r < 0 { // it broke the communicator of which this one was made
		return &liveness.RevokedError{Rank: r, Host: host, Cause: fmt.Sprintf("world rank %d (host %s) %s", v.Rank, host, v.Cause)}
	}
	return &liveness.RevokedError{Rank: r, Host: host, Cause: v.Cause}
}

// Usable returns why peer cannot be used on ch, nil if it can.
func (ch *Channel) Usable(p *peers.Peer) error {
	if ch.err != nil {
		return ch.err
	}
	if p.Lost != nil {
		return fmt.Errorf("%w", p.Lost)
	}
	if ch.leavers.Include(ch.Member(p.Rank)) {
		return liveness.ErrLeft
	}
	if !p.Connected() {
		return fmt.Errorf("no transport reaches world rank %d (host %s)", p.Rank, ch.e.cfg.Host(p.Rank))
	}
	return nil
}

// adopt handles a frame that came before Open.
func (ch *Channel) adopt(m *Kept) {
	src := ch.Member(m.Peer.Rank)
	if src < 0 || ch.err != nil {
		ch.e.drop(m)
		return
	}
	m.Src = src
	switch m.Kind {
	case transport.Eager, transport.RTS:
		ch.arrived(m)
	case transport.Await:
		ch.leavers.Inquire(m.Src)
		ch.e.freeMessage(m)
	default:
		if _, kept := ch.collectives.Frame(m); !kept {
			ch.e.drop(m)
		}
	}
}
