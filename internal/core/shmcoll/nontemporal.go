package shmcoll

import (
	"gompi/internal/core/call"
	"gompi/internal/mem"
)

// Data that the caches would not hold is stored with non-temporal stores, which bypass them.
// Package path has the lengths from which on.

// footprint returns the bytes of all members' buffers, as far as known to this member.
func (c *Collectives) footprint(t *transfer) int {
	own := footprint(t.Send, t.Recv)
	if t.Full {
		return c.Size() * own
	}
	return own + (c.Size()-1)*t.Longest*t.Size
}

// footprint returns the bytes of a member's buffers.
func footprint(send, recv mem.Buffer) int {
	if mem.Overlap(send, recv) { // in place: either lies in the other
		return max(send.Size(), recv.Size())
	}
	return send.Size() + recv.Size()
}

// store stores data that this member receives.
func store(dst, src []byte, nonTemporal bool) {
	if nonTemporal {
		mem.CopyNonTemporal(dst, src)
	} else {
		copy(dst, src)
	}
}

// copy copies data for the other members to dst, in a bounce buffer.
func (c *Collectives) copy(dst, src []byte) { mem.Copies[c.way](dst, src) }

// fork copies b to the place where the others read it, and to this member's own block.
func (c *Collectives) fork(t *transfer, own, to, b []byte) {
	if len(b) == 0 || &own[0] == &b[0] {
		c.copy(to, b)
	} else if c.way == 0 {
		mem.Fork(own, to, b, t.nonTemporal)
	} else {
		c.copy(to, b)
		store(own, b, t.nonTemporal)
	}
}

// combineTo combines the srcs of t into dst.
func (c *Collectives) combineTo(t *call.Transfer, dst mem.Buffer, nonTemporal bool) error {
	if nonTemporal && !c.keepsOrder(t.Op) {
		return mem.ReduceNonTemporal(t.Op.Kind, append(c.dsts[:0], dst), mem.Buffer{}, c.srcs[t.Lo:t.Hi]...)
	}
	return c.combine(t.Op, dst, t.Lo, t.Hi, t.Scans)
}

// combineShare combines the srcs of a long reduction, shares from element lo on, into this
// member's recv, if any, and into held, where the others read the result.
func (c *Collectives) combineShare(l *shared, lo int, held mem.Buffer) error {
	var dst mem.Buffer
	switch {
	case l.receives:
		dst = l.recv.Slice(lo, lo+held.Len())
	case l.staged: // held has this member's operand, which is not combined first
		dst = mem.HostLike(held, held.Len(), c.scratch(c.Me()))
	default:
		return c.combine(l.op, held, 0, c.Size(), false)
	}
	if l.nonTemporal && !c.keepsOrder(l.op) && c.way != mem.NonTemporal {
		return mem.ReduceNonTemporal(l.op.Kind, append(c.dsts[:0], dst), held, c.srcs...)
	}
	err := c.combine(l.op, dst, 0, c.Size(), false)
	c.copy(held.HostSlice(), dst.HostSlice())
	return err
}
