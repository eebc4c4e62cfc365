package hier

import (
	"gompi/internal/core/call"
	"gompi/internal/mem"
)

// Collectives with a block for each rank, of different lengths that all ranks know. The leader of
// a host does all the work between hosts.

// A division holds the numbers of a vector's elements for ranks and hosts.
type division struct {
	ranks   []int // to each
	starts  []int // where each block begins, if blocks are consecutive
	members []int // to each of this host
	hosts   []int // to the ranks of each
	n       int   // to all
	before  int   // to the ranks of the earlier hosts
}

func newDivision(ranks, members, hosts int) division {
	return division{ranks: make([]int, ranks), starts: make([]int, ranks), members: make([]int, members),
		hosts: make([]int, hosts)}
}

// divide gives each rank as many elements as counts says.
func (c *Collectives) divide(counts []int) *division {
	d := &c.parted
	if d.ranks == nil {
		*d = newDivision(len(c.positions), len(c.members()), len(c.hosts))
	}
	copy(d.ranks, counts)
	for r, n := range counts[:len(counts)-1] {
		d.starts[r+1] = d.starts[r] + n
	}
	d.n = 0
	for h, ranks := range c.hosts {
		first := d.n
		for i, r := range ranks {
			d.n += counts[r]
			if h == c.me.host {
				d.before, d.members[i] = first, counts[r]
			}
		}
		d.hosts[h] = d.n - first
	}
	return d
}

// here returns the blocks of this host's ranks in a vector by host.
func (c *Collectives) here(d *division, v mem.Buffer) mem.Buffer {
	return v.Slice(d.before, d.before+d.hosts[c.me.host])
}

// transfer copies blocks between a vector by rank, with blocks at starts, and a vector by host:
// to the vector by host if back is false.
func (c *Collectives) transfer(d *division, byRank mem.Buffer, starts []int, byHost mem.Buffer, back bool) {
	at := 0
	for _, ranks := range c.hosts {
		for _, r := range ranks {
			n := d.ranks[r]
			dst, src := byHost.Slice(at, at+n), byRank.Slice(starts[r], starts[r]+n)
			if back {
				dst, src = src, dst
			}
			copy(dst.HostSlice(), src.HostSlice())
			at += n
		}
	}
}

// allgatherv sends each host's blocks to each other host once. The places of blocks may differ
// from rank to rank: only the last copy depends on them.
func (c *Collectives) allgatherv(send, recv mem.Buffer, counts, displs []int) error {
	d := c.divide(counts)
	inPlace := c.packed && displs == nil
	leader, all := c.setLeaders(0), recv
	if !inPlace {
		all = c.all.Scratch(send, d.n)
	}
	mine := c.here(d, all)
	if err := c.inside(c.fresh().Gatherv(leader, send, mine, d.members, nil)); err != nil {
		return err
	}
	if c.me.member == leader {
		if err := c.between(c.leaders, new(call.Call).Allgatherv(mine, all, d.hosts, nil)); err != nil {
			return err
		}
	}
	if err := c.inside(c.fresh().Bcast(leader, all)); err != nil || inPlace {
		return err
	}
	if displs == nil {
		displs = d.starts
	}
	c.transfer(d, recv, displs, all, true)
	return nil
}

// reduceScatter combines operands inside each host, then the hosts' results on each block's host.
func (c *Collectives) reduceScatter(send, recv mem.Buffer, counts []int, op call.Op) error {
	d, leader := c.divide(counts), c.setLeaders(0)
	all, mine := c.scratch(leader, send, d.n), c.scratch(leader, send, d.hosts[c.me.host])
	if err := c.inside(c.fresh().Reduce(leader, send, all, op.Base())); err != nil {
		return err
	}
	if c.me.member == leader {
		if !c.packed {
			byRank := all
			all = c.all.Scratch(send, d.n)
			c.transfer(d, byRank, d.starts, all, false)
		}
		if err := c.between(c.leaders, new(call.Call).ReduceScatter(all, mine, d.hosts, op.Base())); err != nil {
			return err
		}
		if err := op.Finish(mine, c.all.Size()); err != nil {
			return err
		}
	}
	return c.inside(c.fresh().Scatterv(leader, mine, recv, d.members, nil))
}
