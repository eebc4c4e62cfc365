package shmcoll

import (
	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/path"
	"gompi/internal/core/shmsync"
	"gompi/internal/mem"
)

// The most frequent short collectives take a single step and no Transfer: allreduce, barrier,
// collectives with a root, and scan (np=2 near, in ns with a Transfer and without; 8 B, back to
// back: bcast 104 and 87, reduce 158 and 106, gather 124 and 94, scatter 109 and 86, scan 154 and
// 105; 1 KiB: bcast 680 and 635, reduce 710 and 610, gather 685 and 625, scan 735 and 670).

// short does o if possible in this way, and reports whether it is.
func (c *Collectives) short(p *path.Path, o *call.Call) (is bool, err error) {
	if p.Algorithm != path.OneStep {
		return false, nil
	}
	if o.Kind == calls.Allreduce {
		return true, c.allreduceShort(o)
	}
	switch {
	case o.Kind.As() == calls.Barrier: // Free has a Count
		return true, c.Barrier()
	case o.Kind == calls.Bcast:
		return true, c.bcastShort(o)
	case o.Kind == calls.Gather:
		return true, c.gatherShort(o)
	case o.Kind == calls.Scatter:
		return true, c.scatterShort(o)
	case o.Kind == calls.Reduce && c.Me() == o.Root:
		return true, c.reduceShort(o, c.Size())
	case o.Kind == calls.Reduce:
		return true, c.reduceShort(o, 0)
	case o.Kind == calls.Scan:
		return true, c.reduceShort(o, c.Me()+1)
	}
	return false, nil
}

// begin begins step s of n bytes, the only step of its collective. Publish ends it. exchange is as
// for Lay.
func (c *Collectives) begin(s uint64, n int, exchange bool) (*shmsync.Head, error) {
	if n <= shmsync.InHead {
		c.LayInHead(s)
	} else {
		c.Lay(s, n, c.large, exchange)
	}
	if err := c.AwaitPlace(s); err != nil {
		return nil, err
	}
	return c.Signed(s), nil
}

// publish is a step of n bytes in which this member stores b, or nothing, for the others.
func (c *Collectives) publish(s uint64, n int, b []byte, exchange bool) error {
	h, err := c.begin(s, n, exchange)
	if err == nil {
		c.copy(c.Room(s, len(b)), b)
		c.Publish(h, s)
	}
	return err
}

// consumed reports that this member has read the payloads, of n bytes each, of step s: at once, if
// other members wait for their places.
func (c *Collectives) consumed(s uint64, n int) {
	if n <= shmsync.InHead {
		c.ConsumedSoon(s)
	} else {
		c.Consumed(s)
	}
}

// readPayload copies to b the data of another member in step s, from byte off on.
func (c *Collectives) readPayload(j int, s uint64, off int, b []byte) error {
	err := c.AwaitCallAhead(j, s)
	if err == nil {
		copy(b, c.Payload(j, s, off, len(b)))
	}
	return err
}

func (c *Collectives) bcastShort(o *call.Call) error {
	s, b := c.Next(1), o.Recv.HostSlice()
	if c.Me() == o.Root {
		if err := c.publish(s, len(b), b, false); err != nil {
			return err
		}
	} else if err := c.publish(s, len(b), nil, false); err != nil {
		return err
	} else if err := c.readPayload(o.Root, s, 0, b); err != nil {
		return err
	}
	c.consumed(s, len(b))
	return nil
}

// scatterShort leaves out the root's own block, behind which the others move up: two members that
// exchange 1 KiB stay in the small buffer.
func (c *Collectives) scatterShort(o *call.Call) error {
	s, b := c.Next(1), o.Recv.HostSlice()
	n, at := len(b)*(c.Size()-1), len(b)*c.Me()
	if c.Me() == o.Root {
		h, err := c.begin(s, n, false)
		if err != nil {
			return err
		}
		all, room := o.Send.HostSlice(), c.Room(s, n)
		c.copy(room[:at], all[:at])
		c.copy(room[at:], all[at+len(b):])
		c.Publish(h, s)
		copy(b, all[at:])
	} else if err := c.publish(s, n, nil, false); err != nil {
		return err
	} else {
		if c.Me() > o.Root {
			at -= len(b)
		}
		if err := c.readPayload(o.Root, s, at, b); err != nil {
			return err
		}
	}
	c.consumed(s, n)
	return nil
}

func (c *Collectives) gatherShort(o *call.Call) error {
	s, b := c.Next(1), o.Send.HostSlice()
	if err := c.publish(s, len(b), b, false); err != nil {
		return err
	}
	if c.Me() == o.Root {
		all := o.Recv.HostSlice()
		for j := range c.Size() {
			to := all[j*len(b) : (j+1)*len(b)]
			if j == c.Me() {
				copy(to, b)
			} else if err := c.readPayload(j, s, 0, to); err != nil {
				return err
			}
		}
	}
	c.consumed(s, len(b))
	return nil
}

// reduceShort is a reduce or a scan, in which this member combines the operands of members 0 to
// upTo-1.
func (c *Collectives) reduceShort(o *call.Call, upTo int) error {
	s := c.Next(1)
	if err := c.publish(s, o.Send.Size(), o.Send.HostSlice(), false); err != nil {
		return err
	}
	if upTo > 0 {
		if err := c.combineStep(s, o, upTo); err != nil {
			return err
		}
	}
	c.consumed(s, o.Send.Size())
	return nil
}

// allreduceShort makes every member combine all operands itself.
func (c *Collectives) allreduceShort(o *call.Call) error {
	s := c.Next(1)
	if err := c.publish(s, o.Send.Size(), o.Send.HostSlice(), true); err != nil {
		return err
	}
	if err := c.Assemble(s, true); err != nil {
		return err
	}
	err := c.combineStep(s, o, c.Size())
	c.AllConsumed(s)
	return err
}

// combineStep combines into o.Recv the operands of members 0 to n-1 in step s, including this
// member. Where operands have an order, this member's operand is read from its stored copy, too:
// the result may overwrite the operand before all is combined.
func (c *Collectives) combineStep(s uint64, o *call.Call, n int) error {
	staged := c.keepsOrder(o.Op)
	if n == 2 && !staged {
		return c.combinePair(s, o)
	}
	for j := range n {
		if j == c.Me() && !staged {
			c.srcs[j] = o.Send
			continue
		}
		if j != c.Me() {
			if err := c.AwaitCall(j, s); err != nil {
				return err
			}
		}
		c.srcs[j] = c.operandOf(s, o, j)
	}
	return c.combine(o.Op, o.Recv, 0, n, o.Kind == calls.Scan)
}

// combinePair is combineStep of members 0 and 1. It does not go through srcs: a load of just
// stored words from there stalls the processor.
func (c *Collectives) combinePair(s uint64, o *call.Call) error {
	peer := 1 - c.Me()
	if err := c.AwaitCall(peer, s); err != nil {
		return err
	}
	a, b := o.Send, c.operandOf(s, o, peer)
	if peer == 0 {
		a, b = b, a
	}
	return mem.Reduce(o.Op.Kind, o.Recv, a, b)
}

// operandOf returns the operand that member j gives in step s.
func (c *Collectives) operandOf(s uint64, o *call.Call, j int) mem.Buffer {
	return mem.HostLike(o.Send, o.Send.Len(), c.Payload(j, s, 0, o.Send.Size()))
}
