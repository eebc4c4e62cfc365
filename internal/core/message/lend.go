package message

import (
	"slices"

	"gompi/internal/core/lease"
	"gompi/internal/core/payload"
	"gompi/internal/core/peers"
	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// This file decides what C may do without Go (package lease). All that is lent holds nothing that a
// short message could have to wait for or to be matched with: no receive is posted and no message
// is kept on a communicator that is lent, and a peer's rings are in the midst of no frame.

// lending is what of an Engine is lent again and again.
type lending struct {
	*lease.Lease                  // nil without C
	lender       transport.Lender // that has the rings
	takenOver    bool             // receives pass from C to Go or back: nothing is lent
	channels     []lentChannel
	peers        []lentPeer
}

// A lentChannel is one that C uses, by its number there.
type lentChannel struct {
	ch   *Channel
	slot int
	idle int // leases in which C has not used it
}

type lentPeer struct {
	rank  world.Rank
	local int
	idle  int
}

// mostIdle is how many leases in which C has not used it something stays lent.
const mostIdle = 64

// mostAsked is how many members a communicator has at most in which C asks all for messages.
const mostAsked = 32

// longSpin is how often C looks for a message while a driver would poll once.
const longSpin = 8

// Attach lets C send and receive by l. kind is the element type of all its messages. mix makes it
// leave some of them to Go, for tests.
func (e *Engine) Attach(l *lease.Lease, kind mem.Type, mix bool) {
	e.progress.Lock()
	defer e.progress.Unlock()
	e.lending.Lease = l
	r := l.Record()
	r.Credit, r.Type, r.Most = int64(e.credit), uint32(kind), uint32(e.cfg.Eager)
	if mix {
		r.Mix = 1
	}
	e.progress.SetLease(l)
}

// Lend lends ch, which C calls slot, for messages with a member, all if that is Any, and what C has
// used lately.
func (ch *Channel) Lend(slot, member int) {
	e := ch.e
	l := &e.lending
	if l.Lease == nil || slot >= lease.Channels || ch.Size() > lease.Peers || member >= ch.Size() || member == ch.Rank() {
		return
	}
	e.progress.Lock()
	defer e.progress.Unlock()
	if l.Begin() {
		e.Poll(world.None) // C has only looked at what it wanted
		e.progress.PassDrive()
	}
	if l.takenOver || !e.progress.Rest() || e.peers.Pending() || e.Live.Pending() || e.Live.Asking() {
		return
	}
	if member >= 0 {
		l.include(ch, slot, member)
	}
	for m := 0; member < 0 && ch.Size() <= mostAsked && m < ch.Size(); m++ {
		if m != ch.Rank() {
			l.include(ch, slot, m)
		}
	}
	if l.lender == nil {
		return
	}
	if most := l.lender.Lend(); most > 0 && l.prepare() {
		r := l.Record()
		r.Most, r.Spin = uint32(min(most, e.cfg.Eager)), uint32(longSpin*e.progress.Spin())
		l.Lend()
	}
}

// TakeOver calls f for the receives that C holds, in order, with the lease recalled. What f posts
// comes before anything else is posted.
func (e *Engine) TakeOver(f func(lease.Receive)) {
	e.setTakenOver(true)
	e.lending.TakeOver(f)
	e.setTakenOver(false)
}

func (e *Engine) setTakenOver(on bool) {
	e.progress.Lock() // which recalls what is lent
	defer e.progress.Unlock()
	e.lending.takenOver = on
}

// Claim prepares to give C receives, and reports false if it holds some. C has no lease from here
// to EndClaim: a receive that it posted meanwhile would be lost with the claim.
func (e *Engine) Claim() bool {
	e.progress.Lock() // which recalls what is lent
	defer e.progress.Unlock()
	if e.lending.Holds() {
		return false
	}
	e.lending.takenOver = true
	e.lending.Claim()
	return true
}

// EndClaim ends it. holds states that C has got receives.
func (e *Engine) EndClaim(holds bool) {
	e.progress.Lock()
	defer e.progress.Unlock()
	e.lending.takenOver = false
	if !holds {
		e.lending.Revoke()
	}
}

// Withdraw takes back n receives that are posted, whose Handles name nothing then, and reports
// whether it has: only if nothing else is under way.
func (e *Engine) Withdraw(n int, at func(i int) Handle) bool {
	e.progress.Lock()
	defer e.progress.Unlock()
	if !e.progress.OnlyDeferred(n) {
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
		e.over(r)
		e.freeRequest(r)
	}
	return true
}

// Unlend ends the use of slot for ch.
func (ch *Channel) Unlend(slot int) {
	ch.e.progress.Lock() // which recalls what is lent
	defer ch.e.progress.Unlock()
	l := &ch.e.lending
	l.channels = slices.DeleteFunc(l.channels, func(x lentChannel) bool { return x.slot == slot })
}

// include has a communicator and a peer lent from now on.
func (l *lending) include(ch *Channel, slot, member int) {
	p := ch.e.peers.Peer(ch.World(member))
	i := slices.IndexFunc(l.peers, func(x lentPeer) bool { return x.rank == p.Rank })
	if i < 0 {
		if i = len(l.peers); !l.add(p) {
			return
		}
	}
	if l.Channel(slot, ch.ID, ch.Size()) || !slices.ContainsFunc(l.channels, func(x lentChannel) bool { return x.slot == slot && x.ch == ch }) {
		l.channels = slices.DeleteFunc(l.channels, func(x lentChannel) bool { return x.slot == slot })
		l.channels = append(l.channels, lentChannel{ch: ch, slot: slot})
	}
	l.peers[i].idle = 0
	l.Route(slot, member, l.peers[i].local)
}

// add makes a peer one that can be lent, if it can.
func (l *lending) add(p *peers.Peer) bool {
	ends, lender, credit, carried, ok := p.Ends()
	if !ok || ends.Local >= lease.Peers {
		return false
	}
	l.lender = lender
	l.Peer(ends.Local, lease.Ends{
		Writer: ends.Writer, Reader: ends.Reader, Behind: ends.Behind, Parked: ends.Parked,
		Credit: credit.Lent(), Carried: carried.Lent(),
	})
	l.peers = append(l.peers, lentPeer{rank: p.Rank, local: ends.Local})
	return true
}

// prepare marks what may be lent now, and reports whether that is anything.
func (l *lending) prepare() bool {
	for i := range l.peers {
		x := &l.peers[i]
		if x.idle++; l.PeerUsed(x.local) {
			x.idle = 0
		}
		if x.idle <= mostIdle && l.lender.MayLend(x.rank) {
			l.LendPeer(x.local)
		}
	}
	n := 0
	l.channels = slices.DeleteFunc(l.channels, func(x lentChannel) bool { return x.ch.closed || x.idle > mostIdle })
	for i := range l.channels {
		x := &l.channels[i]
		if x.idle++; l.ChannelUsed(x.slot) {
			x.idle = 0
		}
		if x.ch.Whole() && x.ch.q.Empty() && len(x.ch.probes) == 0 {
			l.LendChannel(x.slot, x.ch.Rank())
			n++
		}
	}
	return n > 0
}
