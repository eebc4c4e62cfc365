package shmcoll

import (
	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/path"
	"gompi/internal/core/shmsync"
	"gompi/internal/mem"
)

// A shared vector is a long allreduce: a reduce-scatter, then an allgather; or a long reduce, which
// ends with a gather. In each step the members do a chunk of the vector in three stages:
//
//	fill    a member stores the shares of the chunk that the others combine
//	reduce  the member combines its own share with the others' data of this share, and stores
//	        the result for them
//	gather  the member reads the results of the others; in a reduce only the root does
//
// The next steps are filled before the first is reduced, so that no member waits for another that
// is in the same stage.
type shared struct {
	send, recv  mem.Buffer // recv is empty on a member that gets no result
	op          call.Op
	first       uint64 // step
	chunk       int    // elements in a step
	receives    bool   // this member gets the result
	staged      bool   // this member, too, reads its operand from where it stored it
	compared    bool   // as a transfer's
	large       bool   // as a transfer's
	nonTemporal bool   // not in place, where the memory has just been read: 64 MiB 10.4 ms, non-temporal 10.9
}

func (c *Collectives) reduceLong(p path.Chunk, o *call.Call, compared bool) error {
	send, recv := o.Send, o.Recv
	n, size := send.Size(), send.ElemSize()
	l := &shared{send: send, recv: recv, op: o.Op, compared: compared, large: p.Large, chunk: max(p.Of(n, 1)/size, 1)}
	l.receives = o.Kind == calls.Allreduce || o.Root == c.Me()
	l.staged = c.keepsOrder(l.op)
	l.nonTemporal = c.paths.NonTemporal(c.Size()*2*n) && !mem.Same(send, recv)
	steps := (send.Len() + l.chunk - 1) / l.chunk
	l.first = c.Next(steps)
	// Twice as many steps are under way: from filling to reducing, and then to gathering.
	ahead := int(min(c.Ahead(2*l.chunk*size, l.large), shmsync.Depth/4))
	for i := range steps + 2*ahead {
		if i < steps {
			if err := c.fillShares(l, i); err != nil {
				return err
			}
		}
		if i == 0 && !l.compared {
			if err := c.AwaitCalls(l.first); err != nil {
				return err
			}
		}
		if k := i - ahead; k >= 0 && k < steps {
			if err := c.reduceShare(l, k); err != nil {
				return err
			}
		}
		if k := i - 2*ahead; k >= 0 {
			if err := c.gatherShares(l, k); err != nil {
				return err
			}
		}
	}
	return nil
}

// bounds returns the elements of member j's share of step i, and the first element of the step.
// Shares begin at cache lines.
func (l *shared) bounds(i, j, members int) (base, lo, hi int) {
	base = i * l.chunk
	n := min(l.chunk, l.send.Len()-base)
	lo, hi = mem.Share(n, members, mem.PerLine(l.send), j)
	return base, base + lo, base + hi
}

// held returns the memory in which member j has elements lo to hi-1 of a step that begins with
// element base.
func (c *Collectives) held(l *shared, j int, s uint64, base, lo, hi int) []byte {
	size := l.send.ElemSize()
	return c.Payload(j, s, (lo-base)*size, (hi-lo)*size)
}

func (c *Collectives) fillShares(l *shared, i int) error {
	s, me := l.first+uint64(i), c.Me()
	base, lo, hi := l.bounds(i, me, c.Size())
	end := min(base+l.chunk, l.send.Len())
	c.Lay(s, (end-base)*l.send.ElemSize(), l.large, true)
	h, err := c.Acquire(s, i == 0 && !l.compared)
	if err != nil {
		return err
	}
	if l.staged {
		lo = hi
	}
	c.copy(c.held(l, me, s, base, base, lo), l.send.Slice(base, lo).HostSlice())
	c.copy(c.held(l, me, s, base, hi, end), l.send.Slice(hi, end).HostSlice())
	c.Publish(h, s)
	return nil
}

func (c *Collectives) reduceShare(l *shared, i int) error {
	s, me := l.first+uint64(i), c.Me()
	base, lo, hi := l.bounds(i, me, c.Size())
	like := l.send.Slice(lo, hi)
	for j := range c.Size() {
		if j != me {
			if err := c.AwaitStep(j, s); err != nil {
				return err
			}
		} else if !l.staged {
			c.srcs[j] = like
			continue
		}
		c.srcs[j] = mem.HostLike(like, hi-lo, c.held(l, j, s, base, lo, hi))
	}
	held := mem.HostLike(like, hi-lo, c.held(l, me, s, base, lo, hi))
	if err := c.combineShare(l, lo, held); err != nil {
		return err
	}
	c.ResultReady(s)
	return nil
}

func (c *Collectives) gatherShares(l *shared, i int) error {
	s := l.first + uint64(i)
	for d := 1; d < c.Size() && l.receives; d++ {
		j := (c.Me() + d) % c.Size()
		if err := c.AwaitResult(j, s); err != nil {
			return err
		}
		base, lo, hi := l.bounds(i, j, c.Size())
		store(l.recv.Slice(lo, hi).HostSlice(), c.held(l, j, s, base, lo, hi), l.nonTemporal)
	}
	c.Consumed(s)
	return nil
}
