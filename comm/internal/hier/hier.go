// Package hier does the collectives of ranks on several hosts in two levels: among the ranks of
// a host through shared memory, and between hosts by messages of some of them, the leaders.
// Which these are is said by the Path:
//
//	Leader       one for each host, the root or the first: fewest messages
//	MultiLeader  as many as each host has ranks: each does a share of the vector, with those
//	             of its number on the other hosts, its rail
//
// Either way a byte passes from one host to another once, wherever on them ranks are.
//
// What is called, its number, and what becomes of ranks that disagree, die or leave, is the
// business of the communicator's round, as without hierarchy. The messages of both levels are
// the round's, and who waits in shared memory tells what it waits in, and is told.
package hier

import (
	"gompi/comm/internal/call"
	"gompi/comm/internal/coll"
	"gompi/comm/internal/path"
	"gompi/comm/internal/shmcoll"
	"gompi/internal/mem"
)

// A Comm is the ranks of a communicator, as one of them sees them.
type Comm struct {
	all    coll.Peers
	hosts  [][]int // their ranks
	seats  []seat  // by rank
	me     seat
	rails  int  // as many as the least host has ranks
	packed bool // a host's ranks are neighbours

	room    *shmcoll.Comm  // nil if this one is alone on its host
	alone   *coll.Subset   // then, this one
	inner   *path.Selector // of the members of this host
	over    *path.Selector // of messages between hosts
	leaders *coll.Subset   // one of each host
	rail    *coll.Subset   // those with this one's number on all hosts, nil if it is on none

	// Room for what a call works on, used again by the next.
	parted   division
	counts   []int // of Share
	pipeline pipeline
}

// A seat is where a rank is: the number of its host, and its own among the members
// there.
type seat struct{ host, member int }

// inside does a collective of the members of this host: through shared memory, or alone.
func (c *Comm) inside(o *call.Call) error {
	p := c.inner.For(o)
	if c.room != nil {
		return c.room.Run(p, o)
	}
	return coll.Run(c.alone, p.Algorithm, o)
}

// between does a collective of one rank of each host, by messages.
func (c *Comm) between(peers coll.Peers, o *call.Call) error {
	return coll.Run(peers, c.over.For(o).Algorithm, o)
}

// Shape returns what a Selector has to know of ranks by host: whether hosts have equally many,
// and whether those of a host are neighbours.
func Shape(hosts [][]int) (even, packed bool) {
	even, packed = true, true
	next := 0
	for _, ranks := range hosts {
		even = even && len(ranks) == len(hosts[0])
		for _, r := range ranks {
			packed = packed && r == next
			next++
		}
	}
	return even, packed
}

// New returns the ranks of all by host, of which hosts[i][j] is the j-th on host i. room is that
// of this one's host, with its Selector inside, and nil if the rank is alone there. Messages
// between hosts go by rules.
func New(hosts [][]int, all coll.Peers, room *shmcoll.Comm, inside *path.Selector, rules *path.Rules) *Comm {
	c := &Comm{all: all, hosts: hosts, room: room, inner: inside}
	_, c.packed = Shape(hosts)
	c.seat(all.Rank())
	c.counts = make([]int, len(c.Members()))
	c.parted = newDivision(len(c.seats), len(c.Members()), len(hosts))
	c.over = path.New(path.Topology{Ranks: len(hosts)}, rules)
	c.alone = &coll.Subset{Peers: all, Ranks: hosts[c.me.host]}
	c.leaders = &coll.Subset{Peers: all, Ranks: make([]int, len(hosts)), Me: c.me.host}
	if c.OnRail() {
		c.rail = &coll.Subset{Peers: all, Me: c.me.host}
		for _, ranks := range hosts {
			c.rail.Ranks = append(c.rail.Ranks, ranks[c.me.member])
		}
	}
	return c
}

// Room returns the room of this host's ranks, nil if the rank is alone there.
func (c *Comm) Room() *shmcoll.Comm { return c.room }

// seat seats all ranks, of which one is this one.
func (c *Comm) seat(me int) {
	c.seats = make([]seat, c.all.Size())
	c.rails = len(c.seats)
	for h, ranks := range c.hosts {
		c.rails = min(c.rails, len(ranks))
		for i, r := range ranks {
			c.seats[r] = seat{h, i}
		}
	}
	c.me = c.seats[me]
}

// lead makes root lead for its host, and member 0 for the others. It returns which
// member speaks for this one.
func (c *Comm) lead(root int) int {
	for h, ranks := range c.hosts {
		c.leaders.Ranks[h] = ranks[0]
	}
	home := c.seats[root]
	c.leaders.Ranks[home.host] = root
	if c.me.host == home.host {
		return home.member
	}
	return 0
}

// Members returns the ranks of this host.
func (c *Comm) Members() []int { return c.hosts[c.me.host] }

// OnRail reports whether this rank does a share where each does.
func (c *Comm) OnRail() bool { return c.me.member < c.rails }

// OverRail does a collective of the ranks with this one's number on all hosts, by messages.
func (c *Comm) OverRail(o *call.Call) error { return c.between(c.rail, o) }

// Share divides b among the members that are on rails, at whole lines of the cache. It returns this
// one's share, and the elements of each member's, valid until the next Share.
func (c *Comm) Share(b mem.Buffer) (mine mem.Buffer, counts []int) {
	line := mem.CacheLine / b.Type().Size()
	for i := range c.counts {
		lo, hi := mem.Share(b.Len(), c.rails, line, i)
		c.counts[i] = hi - lo
	}
	return b.Slice(mem.Share(b.Len(), c.rails, line, c.me.member)), c.counts
}

// block returns what belongs to the ranks of a host in a vector with n elements for
// each rank, by host, if hosts are even.
func (c *Comm) block(b mem.Buffer, host, n int) mem.Buffer {
	n *= len(c.Members())
	return b.Slice(host*n, (host+1)*n)
}

// byHost returns b, which has n elements for each rank, with those for the ranks of
// one host after those for another's. To sort them costs less than the wire (2x2, ranks
// dealt out, at 1 Gbit/s: allgather of 256 KiB blocks by messages 13.1 ms, so 4.0).
func (c *Comm) byHost(b mem.Buffer, n int) mem.Buffer {
	if c.packed {
		return b
	}
	to, at := c.all.Scratch(b, b.Len()), 0
	for _, ranks := range c.hosts {
		for _, r := range ranks {
			copy(to.Slice(at, at+n).HostSlice(), b.Slice(r*n, (r+1)*n).HostSlice())
			at += n
		}
	}
	return to
}

// placeByHost returns where b's elements can be put by host, for byRank to bring back.
func (c *Comm) placeByHost(b mem.Buffer) mem.Buffer {
	if c.packed {
		return b
	}
	return c.all.Scratch(b, b.Len())
}

// byRank copies what is in from by host, n elements for each rank, to b.
func (c *Comm) byRank(b, from mem.Buffer, n int) {
	if c.packed {
		return
	}
	at := 0
	for _, ranks := range c.hosts {
		for _, r := range ranks {
			copy(b.Slice(r*n, (r+1)*n).HostSlice(), from.Slice(at, at+n).HostSlice())
			at += n
		}
	}
}

// scratch returns room for n elements like those of b on the member that speaks.
func (c *Comm) scratch(leader int, b mem.Buffer, n int) mem.Buffer {
	if c.me.member != leader {
		return mem.Buffer{}
	}
	return c.all.Scratch(b, n)
}
