package lease

import (
	"slices"
	"unsafe"

	"gompi/internal/core/peers"
	"gompi/internal/world"
)

// This file lends communicators and peers for messages. Callers have the lock.

// A Channel is a communicator. MayLend reports whether C may match its messages: the communicator
// has no posted receive and keeps no message.
type Channel interface {
	Rank() int
	Size() int
	MayLend() bool
}

// A lentChannel is a communicator that C uses; slot is its number in C.
type lentChannel struct {
	Channel
	slot int
	idle int // leases without use by C
}

type lentPeer struct {
	rank  world.Rank
	local int
	idle  int
}

// mostIdle is the number of leases that communicators and peers stay lent without use by C.
const mostIdle = 64

// Include has the next leases lend ch for messages with a member, p. slot is C's number of ch, and
// id the communicator's in frames.
func (l *Lease) Include(ch Channel, slot int, id uint64, member int, p *peers.Peer) {
	i := slices.IndexFunc(l.peers, func(x lentPeer) bool { return x.rank == p.Rank })
	if i < 0 {
		if i = len(l.peers); !l.add(p) {
			return
		}
	}
	if !slices.ContainsFunc(l.channels, func(x lentChannel) bool { return x.slot == slot && x.Channel == ch }) {
		l.drop(slot)
		l.channels = append(l.channels, lentChannel{Channel: ch, slot: slot})
		l.open(slot, id, ch.Size())
	}
	l.peers[i].idle = 0
	l.rec.routes[slot][member] = uint16(l.peers[i].local + 1)
}

// add makes p known to C, and reports whether p can be lent: its transport has rings.
func (l *Lease) add(p *peers.Peer) bool {
	lender := p.Lender()
	if lender == nil {
		return false
	}
	ends, local, ok := lender.Ends(p.Rank)
	if !ok || local >= Peers {
		return false
	}
	l.pinner.Pin(ends.Writer) // Reader and Behind lie beside ends.Writer
	l.pinner.Pin(p)
	r := &l.rec.peers[local]
	r.Ends, r.credit, r.carried, r.local = ends, unsafe.Pointer(&p.Credit), unsafe.Pointer(&p.Carried), int32(local)
	l.lender = lender
	l.peers = append(l.peers, lentPeer{rank: p.Rank, local: int(local)})
	return true
}

// open makes slot stand for a communicator. Its routes stay if slot stood for the same before.
func (l *Lease) open(slot int, id uint64, size int) {
	if c := &l.rec.channels[slot]; c.size != int32(size) || c.context != id {
		*c = channel{size: int32(size), context: id}
		clear(l.rec.routes[slot][:size])
	}
}

func (l *Lease) drop(slot int) {
	l.channels = slices.DeleteFunc(l.channels, func(x lentChannel) bool { return x.slot == slot })
}

// Exclude ends the use of slot. Exclude takes the lock.
func (l *Lease) Exclude(slot int) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.drop(slot)
}

// Lend lends the communicators and peers in use, for messages of at most eager bytes. spin is the
// number of times that C polls for a message.
func (l *Lease) Lend(eager, spin int) {
	if l.passing || l.lender == nil {
		return
	}
	if most := l.lender.Lend(); most > 0 && l.prepare() {
		l.rec.Most, l.rec.Spin = uint32(min(most, eager)), uint32(spin)
		l.rec.word.Store(lent)
	}
}

// prepare marks the communicators and peers of the next lease, and reports whether there is any
// communicator.
func (l *Lease) prepare() (some bool) {
	for i := range l.peers {
		x := &l.peers[i]
		p := &l.rec.peers[x.local]
		x.idle = aged(x.idle, &p.used)
		if x.idle <= mostIdle && l.lender.MayLend(x.rank) {
			p.stamp = l.rec.stamp
		}
	}
	l.channels = slices.DeleteFunc(l.channels, func(x lentChannel) bool { return x.idle > mostIdle })
	for i := range l.channels {
		x := &l.channels[i]
		x.idle = aged(x.idle, &l.rec.channels[x.slot].used)
		if x.MayLend() {
			l.lendChannel(x.slot, x.Rank())
			some = true
		}
	}
	return some
}

// aged returns the number of consecutive leases without use, given that number before the last
// lease.
func aged(idle int, used *uint32) int {
	if *used == 0 {
		return idle + 1
	}
	*used = 0
	return 0
}

// lendChannel makes a communicator part of the lease, after the peers. self is this rank in the
// communicator.
func (l *Lease) lendChannel(slot, self int) {
	c := &l.rec.channels[slot]
	c.stamp, c.whole = l.rec.stamp, 1
	for member, at := range l.rec.routes[slot][:c.size] {
		if member != self && (at == 0 || l.rec.peers[at-1].stamp != l.rec.stamp) {
			c.whole = 0
		}
	}
}

// Lent reports whether the communicator with number slot is lent for any messages, and whether all
// other members are lent peers, too.
func (l *Lease) Lent(slot int) (some, whole bool) {
	c := &l.rec.channels[slot]
	some = l.rec.word.Load() == lent && c.stamp == l.rec.stamp
	return some, some && c.whole == 1
}
