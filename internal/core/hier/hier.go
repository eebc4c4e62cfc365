// Package hier does hierarchical collectives: the ranks of each host combine and share data through
// shared memory, and leaders exchange messages between hosts. A byte goes from a host to another
// only once, whichever ranks need it there. The Path says which ranks are the leaders:
//
//	Leader       one rank of each host, the root or the first: fewest messages
//	MultiLeader  all ranks of each host: each exchanges a share of the vector with the ranks
//	             of the same number on the other hosts, its rail (as in NCCL)
//
// bcast, reduce and allreduce of long vectors go in chunks: while a chunk is between the hosts, the
// next is combined inside them and the previous handed out (pipeline.go). The others go whole
// (collectives.go), collectives with counts for each rank in counts.go.
//
// All messages are of the communicator's round.Round, for which a rank that waits in shared memory
// polls too. So the Round finds differing calls, and ranks that die or leave, as without hierarchy.
package hier

import (
	"gompi/internal/core/call"
	"gompi/internal/core/coll"
	"gompi/internal/core/path"
	"gompi/internal/core/shmcoll"
	"gompi/internal/mem"
)

// Collectives does the hierarchical collectives of a rank of a communicator.
type Collectives struct {
	*Hosts
	all coll.Peers
	me  position

	shared  Shared         // nil if this rank is alone on its host
	alone   *coll.Subset   // this rank
	inner   *path.Selector // of the members of this host
	over    *path.Selector // of messages between hosts
	leaders *coll.Subset   // a rank of each host
	rail    *coll.Subset   // the ranks of this rank's number on all hosts, nil if a host has none

	// Memory that calls work on, reused by the next.
	call     call.Call // inside
	parted   division
	counts   []int // of Share
	pipeline pipeline
}

// Shared does collectives among the ranks of a host, all of which make the same calls: package
// shmcoll does, and comm/sim simulates it. Arguments are valid until the method returns.
type Shared interface {
	// Run does o, along p.
	Run(p *path.Path, o *call.Call) error
	// OpenWindow lets the ranks see each other's vectors, if they can.
	OpenWindow(send, recv mem.Buffer, n, chunks int) (w Window, open bool, err error)
}

// A Window is the result of Shared's OpenWindow.
type Window = shmcoll.Window

// inside does a collective of the members of this host, through shared memory. o is c.fresh(),
// filled in: a Call of the caller's own would be moved to the heap.
func (c *Collectives) inside(o *call.Call) error {
	p := c.inner.For(o)
	if c.shared != nil {
		return c.shared.Run(p, o)
	}
	return coll.Run(c.alone, p.Algorithm, o)
}

// fresh returns a zero Call for inside, valid until the next fresh.
func (c *Collectives) fresh() *call.Call {
	c.call = call.Call{}
	return &c.call
}

// between does a collective of a rank of each host, by messages.
func (c *Collectives) between(peers coll.Peers, o *call.Call) error {
	return coll.Run(peers, c.over.For(o).Algorithm, o)
}

// railed does a collective of the ranks of this rank's rail, by messages. All rails share the links
// of their hosts, so their data together decides where each host would send to all others (cluster
// of comm/sim, 4 hosts with 8 ranks, allreduce of 256 KiB by halving 228 us, direct 356).
func (c *Collectives) railed(peers coll.Peers, o *call.Call) error {
	p := c.over.For(o)
	if p.Algorithm == path.Direct {
		all := *o
		all.Count *= int64(c.rails)
		p = c.over.For(&all)
	}
	return coll.Run(peers, p.Algorithm, o)
}

// Hosts are the ranks of a communicator by host. They are immutable.
type Hosts struct {
	hosts     [][]int    // the ranks of each
	positions []position // by rank
	rails     int        // the ranks of the host that has fewest
	packed    bool       // the ranks of each host are consecutive
}

// A position is the number of a rank's host, and the number of the rank among the members there.
type position struct{ host, member int }

// NewHosts returns ranks by host: hosts[i][j] is the j-th on host i, of ranks in all.
func NewHosts(hosts [][]int, ranks int) *Hosts {
	h := &Hosts{hosts: hosts, positions: make([]position, ranks), rails: ranks}
	_, h.packed = Shape(hosts)
	for i, members := range hosts {
		h.rails = min(h.rails, len(members))
		for j, r := range members {
			h.positions[r] = position{i, j}
		}
	}
	return h
}

// Shape returns a Selector's facts of ranks by host: whether all hosts have the same number of
// ranks, and whether the ranks of each host are consecutive.
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

// New returns the Collectives of this rank of all. shared does the collectives inside this rank's
// host, by the Selector inside, and is nil if the rank is alone there. The Selector over chooses
// the algorithms between hosts.
func New(hosts *Hosts, all coll.Peers, shared Shared, inside, over *path.Selector) *Collectives {
	c := &Collectives{Hosts: hosts, all: all, me: hosts.positions[all.Rank()], shared: shared,
		inner: inside, over: over}
	c.counts = make([]int, len(c.members()))
	c.alone = &coll.Subset{Peers: all, Ranks: c.members()}
	c.leaders = &coll.Subset{Peers: all, Ranks: make([]int, len(c.hosts)), Me: c.me.host}
	if c.onRail() {
		c.rail = &coll.Subset{Peers: all, Me: c.me.host}
		for _, ranks := range c.hosts {
			c.rail.Ranks = append(c.rail.Ranks, ranks[c.me.member])
		}
	}
	return c
}

// Alone reports whether this rank is alone on its host.
func (c *Collectives) Alone() bool { return c.shared == nil }

// setLeaders makes root the leader of its host, and member 0 the leader of each other host. The
// result is the leader of this host, as a member.
func (c *Collectives) setLeaders(root int) int {
	for h, ranks := range c.hosts {
		c.leaders.Ranks[h] = ranks[0]
	}
	home := c.positions[root]
	c.leaders.Ranks[home.host] = root
	if c.me.host == home.host {
		return home.member
	}
	return 0
}

// members returns the ranks of this host.
func (c *Collectives) members() []int { return c.hosts[c.me.host] }

// onRail reports whether this rank has a share in a collective with MultiLeader.
func (c *Collectives) onRail() bool { return c.me.member < c.rails }

// share divides b among the members that are on rails, at cache lines. The results are this
// rank's share, and the elements of each member's share, valid until the next call.
func (c *Collectives) share(b mem.Buffer) (mine mem.Buffer, counts []int) {
	line := mem.PerLine(b)
	for i := range c.counts {
		lo, hi := mem.Share(b.Len(), c.rails, line, i)
		c.counts[i] = hi - lo
	}
	return b.Slice(mem.Share(b.Len(), c.rails, line, c.me.member)), c.counts
}

// block returns the blocks of a host's ranks in b, which is in the order of byHost with n elements
// for each rank. All hosts have the same number of ranks.
func (c *Collectives) block(b mem.Buffer, host, n int) mem.Buffer {
	n *= len(c.members())
	return b.Slice(host*n, (host+1)*n)
}

// byHost returns the blocks of b, n elements for each rank, in the order of hosts. The copy costs
// less than the messages that the hierarchy saves (2x2, ranks dealt out cyclically, at 1 Gbit/s:
// allgather of 256 KiB blocks by messages 13.1 ms, hierarchical 4.0).
func (c *Collectives) byHost(b mem.Buffer, n int) mem.Buffer {
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

// placeByHost returns memory for the blocks of b by hosts: b itself, if ranks have that order.
func (c *Collectives) placeByHost(b mem.Buffer) mem.Buffer {
	if c.packed {
		return b
	}
	return c.all.Scratch(b, b.Len())
}

// byRank copies the blocks of from, n elements each in the order of hosts, to b in the order of
// ranks.
func (c *Collectives) byRank(b, from mem.Buffer, n int) {
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

// scratch returns memory for n elements like b's on the leader, none on other members.
func (c *Collectives) scratch(leader int, b mem.Buffer, n int) mem.Buffer {
	if c.me.member != leader {
		return mem.Buffer{}
	}
	return c.all.Scratch(b, n)
}
