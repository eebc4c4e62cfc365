package randprog

import "gompi/internal/mem"

// An image is the content of a rank's buffers before and after a call, in bytes; nil after means
// anything.
type image struct {
	sendBefore, sendAfter, recvBefore, recvAfter []byte
}

// image returns the image of rank me of size for the given round of a collective.
func (c *collective) image(k *call, me, size, round int) (m image) {
	in := c.contribution(round)
	m.sendBefore = encode(c.typ, k.send, 1, func(i int) value { return in(me, i) })
	m.recvBefore = encode(c.typ, k.recv, 1, func(i int) value { return in(filler+me, i) })
	if c.kind == "bcast" && me == c.root {
		m.recvBefore = encode(c.typ, k.recv, 1, func(i int) value { return in(me, i) })
	}
	if k.sendAt != apart { // the memory is recv's
		copy(m.recvBefore[k.sendAt*c.typ.Size():], m.sendBefore)
	}
	m.recvAfter = append([]byte(nil), m.recvBefore...)
	if m.sendAfter = m.sendBefore; k.sendAt != apart {
		m.sendAfter = nil
	}
	c.result(k, me, size, round, m.recvAfter)
	switch {
	case k.scratch:
		m.sendAfter = nil
	case k.recvAt != apart:
		m.sendAfter = append([]byte(nil), m.sendBefore...)
		copy(m.sendAfter[k.recvAt*c.typ.Size():], m.recvAfter)
	}
	return m
}

// filler plus a rank is the content of its recv before a call.
const filler = 1000

// contribution returns element i of a rank's vector in a round.
func (c *collective) contribution(round int) func(rank, i int) value {
	seed := c.seed + uint64(round)<<40
	return func(rank, i int) value { return valueOf(seed, c.typ, c.op, rank, i) }
}

// result stores the call's result into recv of rank me.
func (c *collective) result(k *call, me, size, round int, recv []byte) {
	in := c.contribution(round)
	width := c.typ.Size()
	// block stores n elements of a rank's contribution, from the given one on, at an element of
	// recv.
	block := func(at, n, rank, from int) {
		copy(recv[at*width:], encode(c.typ, n, 1, func(i int) value { return in(rank, from+i) }))
	}
	switch c.kind {
	case "bcast":
		block(0, k.recv, c.root, 0)
	case "reduce", "reducefunc", "allreduce", "allreducefunc":
		copy(recv, c.reduced(in, size, 0, k.recv))
	case "scan":
		copy(recv, c.reduced(in, me+1, 0, k.recv))
	case "exscan":
		if me > 0 {
			copy(recv, c.reduced(in, me, 0, k.recv))
		}
	case "reducescatter", "reducescatterblock":
		copy(recv, c.reduced(in, size, total(k.counts[:me]), k.recv))
	case "gather", "gatherv", "allgather", "allgatherv":
		if k.recv > 0 {
			for r := range size {
				block(start(k.counts, k.displs, r), k.counts[r], r, 0)
			}
		}
	case "scatter", "scatterv":
		counts, displs, _ := c.layout(size, c.blocks)
		block(0, k.recv, c.root, start(counts, displs, me))
	case "alltoall", "alltoallv", "alltoallw":
		for r := range size {
			theirs := c.call(r, size)
			if c.kind == "alltoall" {
				block(r*c.n, c.n, r, me*c.n)
				continue
			}
			block(start(k.counts, k.displs, r), k.counts[r], r, start(theirs.sendCounts, theirs.sendDispls, me))
		}
	}
}

// reduced returns n elements, from one on, combined over the first ranks, in their order.
func (c *collective) reduced(in func(rank, i int) value, ranks, from, n int) []byte {
	by := 1
	if c.op == mem.Avg {
		by = ranks
	}
	return encode(c.typ, n, by, func(i int) value {
		v := in(0, from+i)
		for r := 1; r < ranks; r++ {
			v = combine(c.op, c.typ, v, in(r, from+i))
		}
		return v
	})
}
