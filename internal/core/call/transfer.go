package call

import (
	"slices"

	"gompi/internal/calls"
	"gompi/internal/mem"
)

// A Transfer is a rank's part in a collective through shared memory: ranks read each other's blocks
// in the places where the owners stored them. It names the blocks that go from rank to rank. All
// collectives except a barrier and an allreduce can run as Transfers. A Transfer may run in chunks:
// the same elements of each block at a time.
type Transfer struct {
	Send, Recv mem.Buffer // empty where this rank sends, or receives, nothing
	Op         Op
	Size       int  // bytes of an element, 1 where there are none
	Longest    int  // elements of the longest block of all ranks; 0 of LocalCounts
	Lo, Hi     int  // this rank reads the blocks sent by ranks Lo to Hi-1
	Splits     bool // each rank reads a block of its own, else all read the same block
	Writes     bool // this rank stores its blocks, from where the others read them
	Full       bool // every rank reads from every other
	Folds      bool // the blocks read are combined into a single block
	Scans      bool // in the order of a scan

	// Staged means that this rank copies its own operand to where the others read it, and reads the
	// copy too, because its result may overwrite the operand before all operands are combined.
	Staged bool

	gathers     bool // Recv has a block for each rank
	rank, ranks int
	out, in     blocks
}

// Scratch is memory that a Transfer needs for blocks of different lengths, reused by one call at
// a time.
type Scratch struct{ send, recv unequal }

// Transfer sets t, which is zero, to c's Transfer on a rank. ordered means that operands are
// combined in the order of coll/order.go. t is valid until s is used for another call.
func (c *Call) Transfer(t *Transfer, rank, ranks int, ordered bool, s *Scratch) {
	kind, root := c.Kind.As(), rank == c.Root
	row, from, size := &calls.Table[kind], &c.Send, c.Send.ElemSize()
	t.rank, t.ranks, t.Splits, t.gathers = rank, ranks, row.Send.PerRank(), row.Recv.PerRank()
	switch {
	case row.Send.Elsewhere == calls.Unused: // the root sends
		t.Lo, t.Hi, t.Writes, size = c.Root, c.Root+1, root, c.Recv.ElemSize()
		switch {
		case !root:
			from = nil
		case kind == calls.Bcast:
			from, t.Hi = &c.Recv, c.Root
		}
	case row.Recv.Elsewhere == calls.Unused: // the root receives
		if t.Staged = root && ordered && row.Reduces; root {
			t.Hi = ranks
		}
		t.Writes = !root || t.Staged
	case kind == calls.Scan || kind == calls.Exscan:
		if t.Hi = rank; kind == calls.Scan {
			t.Hi++
		}
		t.Scans, t.Staged, t.Writes = true, ordered, ordered || rank < ranks-1
	default:
		t.Hi, t.Writes, t.Full = ranks, true, true
	}
	block := equalBlock(row, c, ranks)
	t.Size, t.Longest = max(size, 1), block
	if from != nil {
		t.Send, t.out.each = *from, each(&row.Send, *from, block)
	}
	if t.Lo < t.Hi {
		t.Recv, t.in.each = c.Recv, each(&row.Recv, c.Recv, block)
	}
	if row.Send.Layout >= calls.Counted || row.Recv.Layout >= calls.Counted {
		t.placeUnequal(c, row, s)
	}
	if row.Reduces {
		t.Folds, t.Op = true, c.Op
		if t.Splits {
			own := t.Send.Slice(t.out.start(rank), t.out.start(rank)+t.Recv.Len())
			t.Staged = ordered || mem.Overlap(own, t.Recv) && !mem.Same(own, t.Recv)
		}
	}
}

// equalBlock returns the number of elements of each block, if all are equally long, or of a vector
// without blocks.
func equalBlock(t *calls.Traits, c *Call, ranks int) int {
	switch {
	case t.Send.Layout == calls.Even && t.Recv.Layout == calls.Even:
		return c.Send.Len() / ranks
	case t.Send.Layout == calls.Even, t.Send.Layout == calls.Absent:
		return c.Recv.Len()
	}
	return c.Send.Len()
}

// each returns the elements of every block of b, if they are equally long.
func each(v *calls.Vector, b mem.Buffer, block int) int {
	if v.Layout == calls.Whole {
		return b.Len()
	}
	return block
}

// placeUnequal finds where blocks of different lengths lie.
func (t *Transfer) placeUnequal(c *Call, row *calls.Traits, s *Scratch) {
	switch t.Longest = 0; {
	case c.Kind.LocalCounts():
	case row.Send.Layout >= calls.Counted:
		t.Longest = slices.Max(c.SendCounts)
	default:
		t.Longest = slices.Max(c.RecvCounts)
	}
	switch {
	case row.Send.Layout == calls.Apart:
		t.Size, t.out.unequal, t.in.unequal = 1, s.send.apart(c.Each.Send), s.recv.apart(c.Each.Recv)
		return
	case !t.Writes && t.Splits: // a rank that is not the root of a scatterv
	case row.Send.Layout >= calls.Counted:
		t.out.unequal = s.send.place(c.SendCounts, c.SendDispls)
	default:
		t.out.unequal = s.send.whole(c.Send.Len())
	}
	switch {
	case t.Lo == t.Hi:
	case row.Recv.Layout >= calls.Counted:
		t.in.unequal = s.recv.place(c.RecvCounts, c.RecvDispls)
	default:
		t.in.unequal = s.recv.whole(c.Recv.Len())
	}
}

// From returns the i-th rank that this rank reads from. Where every rank reads from all, each
// starts with a different rank.
func (t *Transfer) From(i int) int {
	if t.Hi-t.Lo == t.ranks {
		return (t.rank + i) % t.ranks
	}
	return i
}

// Out returns elements lo to lo+n-1, or fewer at its end, of the block of Send that a rank reads.
func (t *Transfer) Out(rank, lo, n int) mem.Buffer { return t.out.chunk(t.Send, t.sent(rank), lo, n) }

// In returns elements lo to lo+n-1, or fewer at its end, of the block of Recv that comes from a
// rank.
func (t *Transfer) In(rank, lo, n int) mem.Buffer { return t.in.chunk(t.Recv, t.received(rank), lo, n) }

// OutBytes is Out as host memory.
func (t *Transfer) OutBytes(rank, lo, n int) []byte {
	return t.out.bytes(t.Send, t.sent(rank), lo, n, t.Size)
}

// InBytes is In as host memory.
func (t *Transfer) InBytes(rank, lo, n int) []byte {
	return t.in.bytes(t.Recv, t.received(rank), lo, n, t.Size)
}

// Start returns the index in Send of the first element of the block that a rank reads.
func (t *Transfer) Start(rank int) int { return t.out.start(t.sent(rank)) }

// sent returns the number of the block of Send that a rank reads, received the number of the
// block of Recv that comes from a rank.
func (t *Transfer) sent(rank int) int {
	if t.Splits {
		return rank
	}
	return 0
}

func (t *Transfer) received(rank int) int {
	if t.gathers {
		return rank
	}
	return 0
}

// Lengths returns the block lengths that the ranks of a collective with LocalCounts exchange and
// compare, as words for Fingerprint.Block. sent has a word for each block that this rank sends, a
// single word if all ranks get the same block. expected has the words of the blocks from ranks
// Lo, Lo+1 and so on. longest is the length of the longest block sent.
func (t *Transfer) Lengths() (sent, expected []int, longest int) {
	sent, longest = t.out.words()
	expected, _ = t.in.words()
	return sent, expected, longest
}

// blocks specifies the places of the blocks of a vector: consecutive, if they are equally long. The
// struct is kept to two words, since a copy of a larger struct stalls the processor (see
// mem.Buffer).
type blocks struct {
	each    int // elements of every block
	unequal *unequal
}

// unequal is blocks of different lengths.
type unequal struct {
	counts, starts []int        // the first begins with the vector where there are no starts
	each           []mem.Buffer // the blocks, if they are Buffers of their own: counts are their words
	scratch        []int
}

// at returns the length of block i, the index of its first element, and the vector of that index:
// v, or a Buffer of the block alone.
func (u *unequal) at(v mem.Buffer, i int) (count, start int, of mem.Buffer) {
	if u.each != nil {
		v = u.each[i].Raw()
		return v.Len(), 0, v
	}
	return u.counts[i], u.start(i), v
}

func (u *unequal) start(i int) int {
	if u.starts == nil {
		return 0
	}
	return u.starts[i]
}

func (b *blocks) start(i int) int {
	if b.unequal == nil {
		return i * b.each
	}
	return b.unequal.start(i)
}

// chunk returns elements lo to lo+n-1, or fewer at its end, of block i of v.
func (b *blocks) chunk(v mem.Buffer, i, lo, n int) mem.Buffer {
	count, start := b.each, i*b.each
	if b.unequal != nil {
		count, start, v = b.unequal.at(v, i)
	}
	lo = min(lo, count)
	return v.Slice(start+lo, start+min(lo+n, count))
}

// bytes is chunk as host memory, of elements of size bytes, and saves a call.
func (b *blocks) bytes(v mem.Buffer, i, lo, n, size int) []byte {
	count, start := b.each, i*b.each
	if b.unequal != nil {
		count, start, v = b.unequal.at(v, i)
	}
	lo = min(lo, count)
	return v.HostSlice()[(start+lo)*size : (start+min(lo+n, count))*size]
}

// words encodes each block as a word, and returns the length of the longest.
func (b *blocks) words() (words []int, longest int) {
	u := b.unequal
	if u == nil {
		return nil, 0
	}
	longest = slices.Max(u.counts)
	if u.each != nil {
		longest >>= typeBits
	}
	return u.counts, longest
}

// place sets u to blocks of counts elements at displs, or to consecutive blocks if displs is nil.
func (u *unequal) place(counts, displs []int) *unequal {
	u.counts, u.starts, u.each = counts, displs, nil
	if displs == nil {
		u.scratch = append(u.scratch[:0], 0)
		for _, n := range counts {
			u.scratch = append(u.scratch, u.scratch[len(u.scratch)-1]+n)
		}
		u.starts = u.scratch
	}
	return u
}

// apart sets u to blocks of bytes, each in a Buffer of its own.
func (u *unequal) apart(each []mem.Buffer) *unequal {
	u.scratch = u.scratch[:0]
	for _, b := range each {
		u.scratch = append(u.scratch, wordOf(b))
	}
	u.counts, u.starts, u.each = u.scratch, nil, each
	return u
}

// whole makes u a single block of n elements.
func (u *unequal) whole(n int) *unequal {
	u.scratch = append(u.scratch[:0], n)
	u.counts, u.starts, u.each = u.scratch, nil, nil
	return u
}
