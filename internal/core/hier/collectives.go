package hier

import (
	"fmt"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// Run does o, which all ranks have called, along p. The measurements below are from two hosts
// that are two agents of one machine with two processors, talking TCP, with two ranks each (2x2)
// or four (2x4); float32, medians of each call alone. "By messages" is the Path that a user's
// tuning selects.
func (c *Collectives) Run(p *path.Path, o *call.Call) error {
	switch o.Kind.As() {
	case calls.Barrier:
		return c.barrier()
	case calls.Bcast:
		return c.vector(p, &bcast, o.Root, o.Recv, o.Recv, o.Op)
	case calls.Reduce:
		return c.reduce(p, o.Root, o.Send, o.Recv, o.Op)
	case calls.Allreduce:
		if p.Algorithm == path.MultiLeader {
			return c.vector(p, &allreduceShared, 0, o.Send, o.Recv, o.Op)
		}
		return c.vector(p, &allreduceLed, 0, o.Send, o.Recv, o.Op)
	case calls.ReduceScatterBlock:
		if p.Algorithm == path.MultiLeader {
			return c.reduceScatterShares(c.byHost(o.Send, o.Recv.Len()), o.Recv, o.Op)
		}
		return c.reduceScatterBlock(o.Send, o.Recv, o.Op)
	case calls.Allgather:
		return c.allgather(p, o.Send, o.Recv)
	case calls.Alltoall:
		return c.alltoall(o.Send, o.Recv)
	case calls.Gather:
		return c.gather(o.Root, o.Send, o.Recv)
	case calls.Scatter:
		return c.scatter(o.Root, o.Send, o.Recv)
	case calls.Allgatherv:
		return c.allgatherv(o.Send, o.Recv, o.RecvCounts, o.RecvDispls)
	case calls.ReduceScatter:
		return c.reduceScatter(o.Send, o.Recv, o.SendCounts, o.Op)
	}
	return fmt.Errorf("no hierarchical algorithm for %v", o.Kind)
}

// barrier is a barrier in each host, and between the leaders of the hosts. 2x2: by messages 73 us,
// hierarchical 12.
func (c *Collectives) barrier() error {
	leader := c.setLeaders(0)
	if err := c.inside(c.fresh().Barrier()); err != nil {
		return err
	}
	if c.me.member == leader {
		if err := c.between(c.leaders, new(call.Call).Barrier()); err != nil {
			return err
		}
	}
	return c.inside(c.fresh().Bcast(leader, mem.Buffer{}))
}

// reduce combines the operands inside each host, and then the hosts' results at the root. 2x2 of 8
// bytes: by messages 26 us, hierarchical 14; of 16 MiB: 13.9 and 8.9 ms.
func (c *Collectives) reduce(p *path.Path, root int, send, recv mem.Buffer, op call.Op) error {
	if c.all.Rank() != root {
		recv = c.scratch(c.setLeaders(root), send, send.Len())
	}
	if err := c.vector(p, &reduce, root, send, recv, op); err != nil || c.all.Rank() != root {
		return err
	}
	return op.Finish(recv, c.all.Size())
}

// reduceScatterBlock combines the operands inside each host, and then the hosts' results for each
// block on the block's host. 2x2 of 1 KiB blocks: by messages 49 us, hierarchical 17.
func (c *Collectives) reduceScatterBlock(send, recv mem.Buffer, op call.Op) error {
	n := recv.Len()
	leader := c.setLeaders(0)
	all, mine := c.scratch(leader, send, send.Len()), c.scratch(leader, send, len(c.members())*n)
	if err := c.inside(c.fresh().Reduce(leader, send, all, op.Base())); err != nil {
		return err
	}
	if c.me.member == leader {
		if err := c.between(c.leaders, new(call.Call).ReduceScatterBlock(c.byHost(all, n), mine,
			op.Base())); err != nil {
			return err
		}
		if err := op.Finish(mine, c.all.Size()); err != nil {
			return err
		}
	}
	return c.inside(c.fresh().Scatter(leader, mine, recv))
}

// reduceScatterShares has each member combine, in its host, the blocks for all ranks of its number.
func (c *Collectives) reduceScatterShares(send, recv mem.Buffer, op call.Op) error {
	n := recv.Len()
	parts := c.all.Scratch(send, len(c.hosts)*n)
	for h := range c.hosts {
		if err := c.inside(c.fresh().ReduceScatterBlock(c.block(send, h, n), parts.Slice(h*n, (h+1)*n),
			op.Base())); err != nil {
			return err
		}
	}
	if err := c.railed(c.rail, new(call.Call).ReduceScatterBlock(parts, recv, op.Base())); err != nil {
		return err
	}
	return op.Finish(recv, c.all.Size())
}

// allgather sends each block to each host once. 2x2 of 8 bytes: by messages 93 us, hierarchical 19;
// of 16 MiB: 58 and 39 ms; of 8 MiB at 1 Gbit/s: 215 and 152 ms.
func (c *Collectives) allgather(p *path.Path, send, recv mem.Buffer) (err error) {
	n, all := send.Len(), c.placeByHost(recv)
	if p.Algorithm == path.MultiLeader {
		err = c.allgatherShares(send, all)
	} else {
		err = c.allgatherLed(send, all)
	}
	if err == nil {
		c.byRank(recv, all, n)
	}
	return err
}

func (c *Collectives) allgatherLed(send, all mem.Buffer) error {
	leader, mine := c.setLeaders(0), c.block(all, c.me.host, send.Len())
	if err := c.inside(c.fresh().Gather(leader, send, mine)); err != nil {
		return err
	}
	if c.me.member == leader {
		if err := c.between(c.leaders, new(call.Call).Allgather(mine, all)); err != nil {
			return err
		}
	}
	return c.inside(c.fresh().Bcast(leader, all))
}

// allgatherShares has each member fetch the blocks of ranks with its number, for all of its host.
func (c *Collectives) allgatherShares(send, all mem.Buffer) error {
	n := send.Len()
	fetched := c.all.Scratch(send, len(c.hosts)*n)
	if err := c.railed(c.rail, new(call.Call).Allgather(send, fetched)); err != nil {
		return err
	}
	for h := range c.hosts {
		if err := c.inside(c.fresh().Allgather(fetched.Slice(h*n, (h+1)*n), c.block(all, h, n))); err != nil {
			return err
		}
	}
	return nil
}

// alltoall has each member exchange the blocks for all of their hosts with the ranks of its number.
// 2x2 of 1 KiB blocks: by messages 175 us, hierarchical 26; 2x4: 407 and 86.
func (c *Collectives) alltoall(send, recv mem.Buffer) error {
	n := send.Len() / c.all.Size()
	parts, all := c.all.Scratch(send, send.Len()), c.placeByHost(recv)
	if err := c.railed(c.rail, new(call.Call).Alltoall(c.byHost(send, n), parts)); err != nil {
		return err
	}
	for h := range c.hosts {
		if err := c.inside(c.fresh().Alltoall(c.block(parts, h, n), c.block(all, h, n))); err != nil {
			return err
		}
	}
	c.byRank(recv, all, n)
	return nil
}

// gather moves a single message from each host. 2x2 of 8 bytes: by messages 119 us, hierarchical
// 13; of 128 KiB blocks: 133 and 75.
func (c *Collectives) gather(root int, send, recv mem.Buffer) error {
	n, leader := send.Len(), c.setLeaders(root)
	var all, mine mem.Buffer
	if c.all.Rank() == root {
		all = c.placeByHost(recv)
		mine = c.block(all, c.me.host, n)
	} else {
		mine = c.scratch(leader, send, len(c.members())*n)
	}
	if err := c.inside(c.fresh().Gather(leader, send, mine)); err != nil || c.me.member != leader {
		return err
	}
	err := c.between(c.leaders, new(call.Call).Gather(c.positions[root].host, mine, all))
	if err == nil && c.all.Rank() == root {
		c.byRank(recv, all, n)
	}
	return err
}

// scatter moves a single message to each host. 2x2 of 8 bytes: by messages 26 us, hierarchical 10.
func (c *Collectives) scatter(root int, send, recv mem.Buffer) error {
	n, leader := recv.Len(), c.setLeaders(root)
	if c.all.Rank() == root {
		send = c.byHost(send, n)
	}
	mine := c.scratch(leader, recv, len(c.members())*n)
	if c.me.member == leader {
		if err := c.between(c.leaders, new(call.Call).Scatter(c.positions[root].host, send, mine)); err != nil {
			return err
		}
	}
	return c.inside(c.fresh().Scatter(leader, mine, recv))
}
