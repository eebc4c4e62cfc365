package shmcoll

import (
	"unsafe"

	"gompi/comm/internal/call"
	"gompi/comm/internal/symheap"
	"gompi/internal/mem"
)

// Vectors in the symmetric heap need no bounce buffers: members read and write those of others in
// place.
//
// Only its owner knows whether a vector lies there. So in the first step all members tell each
// other where their vectors are, and if one cannot be reached, the collective goes through bounce
// buffers. That step also orders the accesses of others after what the owner did before. The
// collective ends with a barrier, so no member returns before its vectors have been read and
// written.

// A side is one of a member's two vectors.
type side int

const (
	sends side = iota
	recvs
)

// singleCopy runs o on the members' vectors in place, if all can be reached.
func (c *Comm) singleCopy(o *call.Call) (done bool, err error) {
	var t call.Transfer
	from, to := o.Operands(c.Me())
	mine := places{c.locate(from), c.locate(to)}
	switch o.Kind {
	case call.Bcast, call.Reduce, call.Allreduce, call.Gather, call.Scatter:
	default:
		o.Transfer(&t, c.Me(), c.Size(), c.keepsOrder(o.Op), &c.blocks)
		if mine[recvs] = symheap.Nowhere; t.Staged || o.Overwrites(c.Me(), c.Size()) {
			mine[sends] = symheap.NotShared
		}
	}
	if done, err = c.tellPlaces(mine); !done || err != nil {
		return false, err
	}
	switch o.Kind {
	case call.Bcast, call.Reduce, call.Allreduce:
		err = c.copyJointly(o)
	case call.Gather:
		c.copyRooted(o.Root, o.Send.Size(), recvs, sends)
	case call.Scatter:
		c.copyRooted(o.Root, o.Recv.Size(), sends, recvs)
	default:
		err = c.pull(&t)
	}
	if err != nil {
		return true, err
	}
	return true, c.Barrier()
}

// locate returns where b lies in this member's heap.
func (c *Comm) locate(b mem.Buffer) symheap.Place {
	return symheap.Locate(c.heaps[c.Me()], b.HostSlice())
}

// tellPlaces exchanges where the members' vectors are, and reports whether all can be reached. It
// is the collective's first step, in which calls are compared.
func (c *Comm) tellPlaces(mine places) (shared bool, err error) {
	const size = int(unsafe.Sizeof(mine))
	s, err := c.Exchange((*[size]byte)(unsafe.Pointer(&mine))[:], true)
	if err != nil {
		return false, err
	}
	shared = true
	for j := range c.places {
		at := *(*places)(unsafe.Pointer(unsafe.SliceData(c.Payload(j, s, 0, size))))
		c.places[j] = at
		shared = shared && at[sends] != symheap.NotShared && at[recvs] != symheap.NotShared
	}
	return shared, nil
}

// has reports whether others read or write a vector of a member.
func (c *Comm) has(member int, v side) bool { return c.places[member][v] != symheap.Nowhere }

// vector returns n bytes from off on of a member's vector.
func (c *Comm) vector(member int, v side, off, n int) []byte {
	return c.places[member][v].At(c.heaps[member], off, n)
}

// copyShared copies src to dst, which are the same memory or do not overlap.
func copyShared(dst, src []byte, nonTemporal bool) {
	if unsafe.SliceData(dst) == unsafe.SliceData(src) {
		return
	}
	// Go's own copy of 1 MiB or more always uses non-temporal stores.
	const atOnce = 256 << 10
	for len(src) > 0 {
		n := min(len(src), atOnce)
		store(dst[:n], src[:n], nonTemporal)
		dst, src = dst[n:], src[n:]
	}
}

// pull reads the blocks of all other members for this one, and combines them if t does.
func (c *Comm) pull(t *call.Transfer) error {
	nonTemporal, chunk := c.paths.SingleCopy(footprint(t.Send, t.Recv))
	start := t.Start(c.Me()) * t.Size
	if !t.Folds {
		for i := range c.Size() {
			j := t.From(i)
			dst := t.InBytes(j, 0, t.Longest)
			if len(dst) > 0 {
				copyShared(dst, c.vector(j, sends, start, len(dst)), nonTemporal)
			}
		}
		return nil
	}
	chunk = max(chunk/t.Size, 1)
	for lo := 0; lo < t.Recv.Len(); lo += chunk {
		dst := t.In(0, lo, chunk)
		for j := range c.Size() {
			c.srcs[j] = mem.HostBytes(dst.Type(), dst.Len(), c.vector(j, sends, start+lo*t.Size, dst.Size()))
		}
		if err := c.combineTo(t, dst, nonTemporal); err != nil {
			return err
		}
	}
	return nil
}

// copyRooted copies this member's share of the blocks of n bytes between the root's long vector and
// the short vectors of all.
func (c *Comm) copyRooted(root, n int, long, short side) {
	nonTemporal, _ := c.paths.SingleCopy(2 * n) // a member has as many bytes on average, all blocks included
	for j := range c.Size() {
		lo, hi := shareOf(c.Me(), root, j, c.Size(), n)
		if lo == hi {
			continue
		}
		var ends [2][]byte
		ends[long] = c.vector(root, long, j*n+lo, hi-lo)
		ends[short] = c.vector(j, short, lo, hi-lo)
		copyShared(ends[recvs], ends[sends], nonTemporal)
	}
}

// shareOf returns which part of the n bytes between the root and member j member me copies. Both
// copy a part, such that all members copy equally much: the root, which is an end of every block,
// copies one of as many parts as there are members.
func shareOf(me, root, j, members, n int) (lo, hi int) {
	cut := (n - n/members) / mem.CacheLine * mem.CacheLine
	switch {
	case me == root && j == root:
		return 0, n
	case me == root:
		return cut, n
	case me == j:
		return 0, cut
	}
	return 0, 0
}

// copyJointly does a bcast, reduce or allreduce. Every member does its share: it combines that part
// of all sends in one pass, and stores the result to all recvs. So every byte is read once and
// stored once for each receiver, and all members do equally much, whichever is the root.
//
// A result that is stored in place, where its operand was just read, gets plain stores at any
// length (np=2 near, allreduce of 64 MiB in place: plain 6.4 ms, non-temporal 7.1). With
// non-temporal stores, one pass stores a combined result to all recvs.
func (c *Comm) copyJointly(o *call.Call) error {
	like := o.Recv
	if o.Kind.Reduces() {
		like = o.Send
	}
	lo, hi := mem.Share(like.Size(), c.Size(), mem.CacheLine, c.Me())
	nonTemporal, chunk := c.paths.SingleCopy(like.Size() * c.touched() / c.Size())
	for ; lo < hi; lo += chunk {
		n := min(chunk, hi-lo)
		if !o.Kind.Reduces() {
			c.spread(c.vector(o.Root, sends, lo, n), lo, nonTemporal)
		} else if err := c.reduceJointly(o, lo, n, nonTemporal); err != nil {
			return err
		}
	}
	return nil
}

// reduceJointly combines n bytes of all sends, from lo on, into all recvs.
func (c *Comm) reduceJointly(o *call.Call, lo, n int, nonTemporal bool) error {
	part := func(j int, v side) mem.Buffer {
		return mem.HostBytes(o.Send.Type(), n/o.Send.Type().Size(), c.vector(j, v, lo, n))
	}
	for j := range c.Size() {
		c.srcs[j] = part(j, sends)
	}
	if nonTemporal {
		c.dsts = c.dsts[:0]
		for j := range c.Size() {
			if c.has(j, recvs) {
				c.dsts = append(c.dsts, part(j, recvs))
			}
		}
		return mem.ReduceNonTemporal(o.Op.Kind, c.dsts, mem.Buffer{}, c.srcs...)
	}
	first := c.Me() // whose recv the result is stored to first: its own if it has one
	if !c.has(first, recvs) {
		first = o.Root
	}
	result := part(first, recvs)
	if err := c.combine(o.Op, result, 0, c.Size(), false); err != nil {
		return err
	}
	c.spread(result.HostSlice(), lo, false)
	return nil
}

// spread stores a result to all recvs, from lo on.
func (c *Comm) spread(result []byte, lo int, nonTemporal bool) {
	for j := range c.Size() {
		if c.has(j, recvs) {
			inPlace := c.places[j][sends] == c.places[j][recvs]
			copyShared(c.vector(j, recvs, lo, len(result)), result, nonTemporal && !inPlace)
		}
	}
}

// touched returns the number of vectors. A member in place has one.
func (c *Comm) touched() (n int) {
	for j, at := range c.places {
		if c.has(j, sends) {
			n++
		}
		if c.has(j, recvs) && at[recvs] != at[sends] {
			n++
		}
	}
	return n
}
