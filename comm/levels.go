package comm

import (
	"math"

	"gompi/comm/internal/call"
	"gompi/comm/internal/coll"
	"gompi/comm/internal/node"
	"gompi/internal/mem"
)

// levels does the collectives of ranks on several hosts in two levels: among the
// members of a host through a room, and between hosts by messages of some of them.
// Which these are depends on the length:
//
//	one       speaks for its host, the root or member 0: fewest messages
//	several   carry a share of the vector each, as many as each host has members, to
//	          those with the same number on the other hosts: all work on it
//
// Either way a byte passes from one host to another once, wherever on them ranks are.
//
// What is called, its number, and what becomes of ranks that disagree, die or leave,
// is the business of the communicator's round, as without levels. The messages of
// both levels are the round's, and who waits in a room tells what it waits in, and
// is told.
//
// A host's operands are combined first, in one pass. So reductions in deterministic mode
// go by messages, which keep the order of coll/order.go, and so do functions of the
// user's, but for allreduces where a host's ranks are neighbours. So does what has no
// method here: the v forms whose lengths one rank may know alone, and the scans (2x2, by
// messages and levels: scan of 16 KiB 29 and 41 us, exscan of 8 bytes 25 and 28); and
// where some hosts have more members than others, all that has an equal block for each
// rank.
type levels struct {
	messages          // of all ranks
	hosts     [][]int // their ranks
	seats     []seat  // by rank
	me        seat
	carriers  int  // members that carry a share: as many as the least host has
	even      bool // all hosts have equally many members
	packed    bool // a host's ranks are neighbours
	shareFrom int  // bytes from which on members carry shares of an allreduce

	inner    collectives // among the members of this host
	room     *node.Room  // inner, nil where this host has only one member
	port     innerPort
	speakers messages // one of each host
	spoken   *coll.Subset
	lane     messages // those with this one's number on all hosts, if it carries
	carried  *coll.Subset

	lent     int // allocations of the communicator
	parted   division
	now      vector
	shares   []int        // of the last piece that was shared out, by member
	meantime func() error // passNeighbours
}

// A seat is where a rank is: the number of its host, and its own among the members
// there.
type seat struct{ host, member int }

func (c *Comm) newLevels(hosts [][]int, blocks []node.Token) *levels {
	l := &levels{messages: c.messages, hosts: hosts, shareFrom: shareFrom}
	if c.table.Crowded {
		l.shareFrom = math.MaxInt
	}
	l.seat(c.Rank())
	mine := hosts[l.me.host]
	l.shares = make([]int, len(mine))
	l.parted = newDivision(len(l.seats), len(mine), len(hosts))
	l.meantime = l.passNeighbours
	l.spoken = &coll.Subset{Peers: l.p, Ranks: make([]int, len(hosts)), Me: l.me.host}
	l.speakers = messages{l.spoken, l.t}
	if l.carries() {
		l.carried = &coll.Subset{Peers: l.p, Me: l.me.host}
		for _, ranks := range hosts {
			l.carried.Ranks = append(l.carried.Ranks, ranks[l.me.member])
		}
		l.lane = messages{l.carried, l.t}
	}
	if len(mine) == 1 {
		l.inner = &messages{&coll.Subset{Peers: l.p, Ranks: mine}, l.t}
		return l
	}
	l.port = innerPort{c.ch.Vigil(), c.ch.Round(), c.memory.shm, c.locals(mine), mine}
	l.room = c.newRoom(mine, blocks, &l.port)
	l.inner = l.room
	return l
}

// seat seats all ranks, of which one is this one.
func (l *levels) seat(me int) {
	l.seats = make([]seat, l.p.Size())
	l.carriers, l.even, l.packed = len(l.seats), true, true
	next := 0
	for h, ranks := range l.hosts {
		l.carriers = min(l.carriers, len(ranks))
		l.even = l.even && len(ranks) == len(l.hosts[0])
		for i, r := range ranks {
			l.seats[r] = seat{h, i}
			l.packed = l.packed && r == next
			next++
		}
	}
	l.me = l.seats[me]
}

// speak makes root speak for its host, and member 0 for the others. It returns which
// member speaks for this one.
func (l *levels) speak(root int) int {
	for h, ranks := range l.hosts {
		l.spoken.Ranks[h] = ranks[0]
	}
	home := l.seats[root]
	l.spoken.Ranks[home.host] = root
	if l.me.host == home.host {
		return home.member
	}
	return 0
}

func (l *levels) carries() bool { return l.me.member < l.carriers }

// share divides b among the carriers, at whole lines of the cache, and returns what
// this member carries.
func (l *levels) share(b Buffer) Buffer {
	line := mem.CacheLine / b.Type().Size()
	for i := range l.shares {
		lo, hi := mem.Share(b.Len(), l.carriers, line, i)
		l.shares[i] = hi - lo
	}
	return b.Slice(mem.Share(b.Len(), l.carriers, line, l.me.member))
}

// block returns what belongs to the ranks of a host in a vector with n elements for
// each rank, by host, if hosts are even.
func (l *levels) block(b Buffer, host, n int) Buffer {
	n *= len(l.shares)
	return b.Slice(host*n, (host+1)*n)
}

// byHost returns b, which has n elements for each rank, with those for the ranks of
// one host after those for another's. To sort them costs less than the wire (2x2, ranks
// dealt out, at 1 Gbit/s: allgather of 256 KiB blocks by messages 13.1 ms, so 4.0).
func (l *levels) byHost(b Buffer, n int) Buffer {
	if l.packed {
		return b
	}
	to, at := l.p.Scratch(b, b.Len()), 0
	for _, ranks := range l.hosts {
		for _, r := range ranks {
			copy(to.Slice(at, at+n).HostSlice(), b.Slice(r*n, (r+1)*n).HostSlice())
			at += n
		}
	}
	return to
}

// placeByHost returns where b's elements can be put by host, for byRank to bring back.
func (l *levels) placeByHost(b Buffer) Buffer {
	if l.packed {
		return b
	}
	return l.p.Scratch(b, b.Len())
}

// byRank copies what is in from by host, n elements for each rank, to b.
func (l *levels) byRank(b, from Buffer, n int) {
	if l.packed {
		return
	}
	at := 0
	for _, ranks := range l.hosts {
		for _, r := range ranks {
			copy(b.Slice(r*n, (r+1)*n).HostSlice(), from.Slice(at, at+n).HostSlice())
			at += n
		}
	}
}

// scratch returns room for n elements like those of b on the member that speaks.
func (l *levels) scratch(speaker int, b Buffer, n int) Buffer {
	if l.me.member != speaker {
		return Buffer{}
	}
	return l.p.Scratch(b, n)
}

// keepsOrder reports whether operands are combined as coll/order.go says.
func (l *levels) keepsOrder(op call.Op) bool { return l.t.Deterministic || !op.Commutes() }
