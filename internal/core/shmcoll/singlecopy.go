package shmcoll

import (
	"unsafe"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/mem"
	"gompi/internal/seg"
)

// Members read and write the vectors of others in their own memory, without bounce buffers: in
// the symmetric heap in place, elsewhere through the kernel (reach.go).
//
// Only its owner knows where a vector lies. So in the first step all members exchange the places
// of their vectors, and if any vector is out of reach, the collective goes through bounce
// buffers. That step also orders the accesses of other members after the owner's earlier
// accesses. The collective ends with a barrier, so no member returns before its vectors have been
// read and written. If the collective fails on a member, others may still read that member's
// vectors when it returns, but their calls fail, too; they write only to vectors in the heap
// (shmsync/guard.go).

// singleCopy runs o on the members' vectors in place. exchangeVectors has exchanged their places.
func (c *Collectives) singleCopy(o *call.Call, t *transfer) (err error) {
	failed := true
	defer func() { // also when an operator panics
		if failed {
			c.Shut()
		}
		c.own = [2][]byte{} // they are the caller's again
	}()
	if err = c.copyOnce(o, t); err == nil {
		failed = false
		err = c.NoneShut()
	}
	return err
}

func (c *Collectives) copyOnce(o *call.Call, t *transfer) (err error) {
	switch o.Kind {
	case calls.Bcast, calls.Reduce, calls.Allreduce:
		err = c.copyJointly(o)
	case calls.Gather:
		err = c.copyRooted(o.Root, o.Send.Size(), recvs, sends)
	case calls.Scatter:
		err = c.copyRooted(o.Root, o.Recv.Size(), sends, recvs)
	default:
		err = c.pull(&t.Transfer)
	}
	if err != nil {
		return err
	}
	return c.Barrier()
}

// placesOf returns the places of this member's vectors that other members access.
func (c *Collectives) placesOf(o *call.Call, r *run, cross bool) places {
	from, to := o.Operands(c.Me())
	mine := places{c.locate(sends, from, cross), c.locate(recvs, to, cross)}
	switch o.Kind {
	case calls.Bcast, calls.Reduce, calls.Allreduce, calls.Gather, calls.Scatter:
		return mine
	}
	mine[recvs] = seg.Nowhere
	if c.transferOf(o, r).Staged || o.Overwrites(c.Me(), c.Size()) {
		mine[sends] = seg.NotShared
	}
	return mine
}

// locate returns the place of b, a vector of this member.
func (c *Collectives) locate(v side, b mem.Buffer, cross bool) seg.Place {
	c.own[v] = b.HostSlice()
	place := seg.Locate(c.heaps[c.Me()], c.own[v])
	if place == seg.NotShared && cross && c.kernelReaches(v, c.own[v]) {
		return seg.PrivatePlace(c.own[v])
	}
	return place
}

// exchangePlaces exchanges the places of the members' vectors, and reports whether all can be
// reached. This is the collective's first step, in which calls are compared.
func (c *Collectives) exchangePlaces(mine places) (shared bool, err error) {
	const size = int(unsafe.Sizeof(mine))
	s, err := c.Exchange((*[size]byte)(unsafe.Pointer(&mine))[:], true)
	if err != nil {
		return false, err
	}
	shared = true
	for j := range c.places {
		at := *(*places)(unsafe.Pointer(unsafe.SliceData(c.Payload(j, s, 0, size))))
		c.places[j] = at
		shared = shared && at[sends] != seg.NotShared && at[recvs] != seg.NotShared
	}
	return shared, nil
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

// pull reads the blocks of all other members for this member, and combines them if t is a
// reduction.
func (c *Collectives) pull(t *call.Transfer) error {
	nonTemporal := c.paths.NonTemporalInPlace(footprint(t.Send, t.Recv))
	start := t.Start(c.Me()) * t.Size
	if !t.Folds {
		for i := range c.Size() {
			j := t.From(i)
			dst := t.InBytes(j, 0, t.Longest)
			if len(dst) == 0 {
				continue
			}
			if err := c.fetch(dst, spot{j, sends, start}, nonTemporal); err != nil {
				return err
			}
		}
		return nil
	}
	chunk := c.foldChunk() / t.Size
	for lo := 0; lo < t.Recv.Len(); lo += chunk {
		dst := t.In(0, lo, chunk)
		for j := range c.Size() {
			b, err := c.get(spot{j, sends, start + lo*t.Size}, dst.Size())
			if err != nil {
				return err
			}
			c.srcs[j] = mem.HostLike(dst, dst.Len(), b)
		}
		if err := c.combineTo(t, dst, nonTemporal); err != nil {
			return err
		}
	}
	return nil
}

// copyRooted copies this member's share of the blocks of n bytes between the root's long vector and
// the short vectors of all.
func (c *Collectives) copyRooted(root, n int, long, short side) error {
	nonTemporal := c.paths.NonTemporalInPlace(2 * n) // a member has as many bytes on average, all blocks included
	own := c.places[root]
	inPlace := own[short] == own[long]+seg.Place(root*n)
	for j := range c.Size() {
		lo, hi := shareOf(c.Me(), root, j, c.Size(), n, inPlace)
		if lo == hi {
			continue
		}
		to, from := spot{root, long, j*n + lo}, spot{j, short, lo}
		if long == sends {
			to, from = from, to
		}
		if err := c.move(to, from, hi-lo, nonTemporal); err != nil {
			return err
		}
	}
	return nil
}

// shareOf returns the part that member me copies of the n bytes between the root and member j, so
// that all members copy equally much. Each copies its own block. Where the root's block is in
// place, blocks are cut into as many parts as there are members: each copies its own block except
// the last part, and the root the last part of all.
func shareOf(me, root, j, members, n int, inPlace bool) (lo, hi int) {
	cut := n
	if inPlace {
		cut = (n - n/members) / mem.CacheLine * mem.CacheLine
	}
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

// copyJointly does a bcast, reduce or allreduce. Every member does its share: it combines that
// part of all sends in a single pass, and stores the result to all recvs. So every byte is read
// once and stored once for each receiver, and all members do equally much, whichever is the root.
//
// A result that is stored in place, where its operand was just read, gets plain stores at any
// length (np=2 near, allreduce of 64 MiB in place: plain 6.4 ms, non-temporal 7.1). With
// non-temporal stores, a single pass stores a combined result to all recvs.
func (c *Collectives) copyJointly(o *call.Call) error {
	like := o.Recv
	if o.Kind.Reduces() {
		like = o.Send
	}
	lo, hi := mem.Share(like.Size(), c.Size(), mem.CacheLine, c.Me())
	nonTemporal, chunk := c.paths.NonTemporalInPlace(like.Size()*c.touched()/c.Size()), c.foldChunk()
	for ; lo < hi; lo += chunk {
		n := min(chunk, hi-lo)
		if o.Kind.Reduces() {
			if err := c.reduceJointly(o, lo, n, nonTemporal); err != nil {
				return err
			}
		} else if err := c.copyToAll(o.Root, lo, n, nonTemporal); err != nil {
			return err
		}
	}
	return nil
}

// copyToAll stores n bytes of the root's vector, from lo on, to all recvs: first to this member's,
// if only the root maps its vector.
func (c *Collectives) copyToAll(root, lo, n int, nonTemporal bool) error {
	from := spot{root, sends, lo}
	src := c.at(from, n)
	if src == nil {
		src = c.at(spot{c.Me(), recvs, lo}, n)
		if err := c.fetch(src, from, false); err != nil {
			return err
		}
	}
	return c.spread(src, lo, nonTemporal)
}

// reduceJointly combines n bytes of all sends, from lo on, into all recvs.
func (c *Collectives) reduceJointly(o *call.Call, lo, n int, nonTemporal bool) error {
	as := func(b []byte) mem.Buffer { return mem.HostLike(o.Send, n/o.Send.ElemSize(), b) }
	for j := range c.Size() {
		b, err := c.get(spot{j, sends, lo}, n)
		if err != nil {
			return err
		}
		c.srcs[j] = as(b)
	}
	if nonTemporal && c.storesAt(lo, n, as) {
		return mem.ReduceNonTemporal(o.Op.Kind, c.dsts, mem.Buffer{}, c.srcs...)
	}
	result := c.resultAt(o.Root, lo, n)
	if err := c.combine(o.Op, as(result), 0, c.Size(), false); err != nil {
		return err
	}
	return c.spread(result, lo, false)
}

// storesAt sets dsts to n bytes of all recvs, from lo on. The result is false if this member does
// not map them all.
func (c *Collectives) storesAt(lo, n int, as func([]byte) mem.Buffer) bool {
	c.dsts = c.dsts[:0]
	for j := range c.Size() {
		if c.has(j, recvs) {
			b := c.at(spot{j, recvs, lo}, n)
			if b == nil {
				return false
			}
			c.dsts = append(c.dsts, as(b))
		}
	}
	return true
}

// resultAt returns the first place of n bytes of the result, from lo on: in this member's own
// recv if it has any, else in the root's, or in scratch memory if only the root maps its recv.
func (c *Collectives) resultAt(root, lo, n int) []byte {
	first := c.Me()
	if !c.has(first, recvs) {
		first = root
	}
	if b := c.at(spot{first, recvs, lo}, n); b != nil {
		return b
	}
	return c.scratch(c.Me())[:n]
}

// spread stores a result to all recvs, from lo on.
func (c *Collectives) spread(result []byte, lo int, nonTemporal bool) error {
	for j := range c.Size() {
		if c.has(j, recvs) {
			inPlace := c.places[j][sends] == c.places[j][recvs]
			if err := c.put(spot{j, recvs, lo}, result, nonTemporal && !inPlace); err != nil {
				return err
			}
		}
	}
	return nil
}

// touched returns the number of vectors. Members in place have a single vector.
func (c *Collectives) touched() (n int) {
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
