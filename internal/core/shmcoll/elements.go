package shmcoll

import (
	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/mem"
)

// A function combines whole elements. Elements longer than a bounce buffer do not go through the
// bounce buffer as operands. So the member that combines an element first gathers all its
// operands, by a collective of bytes, which goes through the bounce buffers in chunks.

// elements are the elements of a call, with room for all members' operands of a single element.
type elements struct {
	c          *Collectives
	op         call.Op
	send, recv mem.Buffer
	room       mem.Buffer
}

// byElement does a reduction of long elements. Members combine different elements at the same
// time, except in a reduce, where the root combines all, and in a scan, where each combines all
// its own.
func (c *Collectives) byElement(o *call.Call) error {
	if err := c.Barrier(); err != nil { // compares calls: different calls take different numbers of steps
		return err
	}
	room, err := mem.Host.Alloc(mem.U8, c.Size()*o.Send.ElemSize())
	if err != nil {
		return err
	}
	e := &elements{c, o.Op, o.Send, o.Recv, mem.HostLike(o.Send, c.Size(), room.HostSlice())}
	switch o.Kind {
	case calls.Reduce:
		return e.reduce(o.Root)
	case calls.Allreduce:
		return e.allreduce()
	case calls.Scan:
		return e.scan(c.Me() + 1)
	case calls.Exscan:
		return e.scan(c.Me())
	}
	return e.reduceScatter(o)
}

func (e *elements) reduce(root int) error {
	for i := range e.send.Len() {
		if err := e.gather(root, i); err != nil {
			return err
		}
		if e.c.Me() == root {
			if err := e.combine(i, e.c.Size(), false); err != nil {
				return err
			}
		}
	}
	return nil
}

// allreduce has each member combine one of as many elements as there are members, and then give
// the others the result.
func (e *elements) allreduce() error {
	n, members := e.send.Len(), e.c.Size()
	for lo := 0; lo < n; lo += members {
		hi := min(lo+members, n)
		for i := lo; i < hi; i++ {
			if err := e.gather(i-lo, i); err != nil {
				return err
			}
		}
		if own := lo + e.c.Me(); own < hi {
			if err := e.combine(own, members, false); err != nil {
				return err
			}
		}
		for i := lo; i < hi; i++ {
			if err := e.do(new(call.Call).Bcast(i-lo, bytesOf(e.recv, i))); err != nil {
				return err
			}
		}
	}
	return nil
}

// reduceScatter has each member gather the i-th element of its block, and then combine its
// operands. recv may begin where send does: then an element of send is overwritten only when all
// members have gathered it, since no element is further in its block than in send.
func (e *elements) reduceScatter(o *call.Call) error {
	members := e.c.Size()
	for i := range o.Longest(members) {
		for j := range members {
			if b := o.SendBlock(j, members); b.Lo+i < b.Hi {
				if err := e.gather(j, b.Lo+i); err != nil {
					return err
				}
			}
		}
		if i < e.recv.Len() {
			if err := e.combine(i, members, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// scan combines the operands of the first upTo members.
func (e *elements) scan(upTo int) error {
	for i := range e.send.Len() {
		if err := e.do(new(call.Call).Allgather(bytesOf(e.send, i), e.room.Raw())); err != nil {
			return err
		}
		if upTo > 0 {
			if err := e.combine(i, upTo, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// gather gathers on one member all members' operands of element i of send.
func (e *elements) gather(member, i int) error {
	var all mem.Buffer
	if e.c.Me() == member {
		all = e.room.Raw()
	}
	return e.do(new(call.Call).Gather(member, bytesOf(e.send, i), all))
}

// combine combines the operands of the first upTo members, which are in room, into element i of
// recv.
func (e *elements) combine(i, upTo int, scan bool) error {
	c := e.c
	for j := range upTo {
		c.srcs[j] = e.room.Slice(j, j+1)
	}
	spare := func(_ mem.Buffer, i, _ int) mem.Buffer { return c.srcs[i] }
	return c.combineInOrder(e.op, e.recv.Slice(i, i+1), 0, upTo, scan, spare)
}

// do does a collective of bytes.
func (e *elements) do(o *call.Call) error { return e.c.Run(e.c.paths.For(o).OnHost(), o) }

func bytesOf(b mem.Buffer, i int) mem.Buffer { return b.Slice(i, i+1).Raw() }
