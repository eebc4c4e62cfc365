package call

import (
	"fmt"
	"slices"

	"gompi/internal/calls"
	"gompi/internal/mem"
)

// Where the blocks of the ranks lie in Send and Recv.

// A Span is the elements of a vector from Lo to Hi-1.
type Span struct{ Lo, Hi int }

// A Block is the size and type of a block, on which sender and receiver have to agree. Type is
// NoType if the block is empty.
type Block struct {
	Bytes int64
	Type  mem.Type
}

// String describes b as "8 bytes of int64".
func (b Block) String() string {
	if b.Type == mem.NoType {
		return fmt.Sprintf("%d bytes", b.Bytes)
	}
	return fmt.Sprintf("%d bytes of %v", b.Bytes, b.Type)
}

// BlockOf returns the Block that b holds.
func BlockOf(b mem.Buffer) Block {
	if b.Size() == 0 {
		return Block{}
	}
	return Block{int64(b.Size()), b.Type()}
}

// typeBits are the bits of a Type in the word of a block.
const typeBits = 8

// wordOf encodes a block of alltoallw, whose blocks have types of their own: its bytes and its
// Type.
func wordOf(b mem.Buffer) int {
	x := BlockOf(b)
	return int(x.Bytes)<<typeBits | int(x.Type)
}

// Block decodes a word of Lengths: the number of elements, if all blocks have the same type.
func (f *Fingerprint) Block(word int) Block {
	switch {
	case word == 0:
		return Block{}
	case calls.Table[f.Kind].Send.Layout == calls.Apart:
		return Block{int64(word >> typeBits), mem.Type(word)}
	}
	return Block{int64(word * f.Type.Size()), f.Type}
}

// ofBlocks returns displs, displacements in v. The displacement of an empty block is ignored, as in
// MPI: in the result it is 0 if it lies outside v.
func ofBlocks(v mem.Buffer, counts, displs []int) []int {
	if len(displs) != len(counts) {
		return displs // there are none, or Check refuses them
	}
	inside := displs
	for i, k := range counts {
		if k != 0 || displs[i] >= 0 && displs[i] <= v.Len() {
			continue
		}
		if &inside[0] == &displs[0] {
			inside = slices.Clone(displs) // they are the caller's
		}
		inside[i] = 0
	}
	return inside
}

// SendBlock returns the range of Send that holds the block for a rank: all of Send without
// blocks.
func (c *Call) SendBlock(rank, ranks int) Span {
	return block(calls.Table[c.Kind].Send.Layout, c.Send.Len(), rank, ranks, c.SendCounts, c.SendDispls)
}

// RecvBlock returns the range of Recv that holds the block from a rank: all of Recv without
// blocks.
func (c *Call) RecvBlock(rank, ranks int) Span {
	return block(calls.Table[c.Kind].Recv.Layout, c.Recv.Len(), rank, ranks, c.RecvCounts, c.RecvDispls)
}

func block(l calls.Layout, n, rank, ranks int, counts, displs []int) Span {
	var lo int
	switch {
	case l < calls.Even:
		return Span{0, n}
	case l == calls.Even:
		return Span{rank * (n / ranks), (rank + 1) * (n / ranks)}
	case displs == nil:
		lo = total(counts[:rank])
	default:
		lo = displs[rank]
	}
	return Span{lo, lo + counts[rank]}
}

// Blocks returns the ranges of all blocks of Send and Recv on a rank: a single Span if the vector
// has no blocks, none if the rank does not use the vector.
func (c *Call) Blocks(rank, ranks int) (send, recv []Span) {
	t, root := &calls.Table[c.Kind], rank == c.Root
	if t.Send.On(root) != calls.Unused {
		for r := range blocksOf(&t.Send, ranks) {
			send = append(send, c.SendBlock(r, ranks))
		}
	}
	if t.Recv.On(root) != calls.Unused {
		for r := range blocksOf(&t.Recv, ranks) {
			recv = append(recv, c.RecvBlock(r, ranks))
		}
	}
	return send, recv
}

// blocksOf returns the number of blocks of a vector.
func blocksOf(v *calls.Vector, ranks int) int {
	switch v.Layout {
	case calls.Absent:
		return 0
	case calls.Whole:
		return 1
	}
	return ranks
}

// Exchange sets out[r] to the buffer that rank me sends to rank r, and in[r] to the buffer that
// receives from rank r. The collective reduces nothing.
func (c *Call) Exchange(me int, out, in []mem.Buffer) {
	if c.Kind == calls.Alltoallw {
		copy(out, c.Each.Send)
		copy(in, c.Each.Recv)
		return
	}
	t, ranks := &calls.Table[c.Kind], len(out)
	for r := range ranks {
		if t.Send.On(me == c.Root) != calls.Unused && t.Recv.On(r == c.Root) != calls.Unused {
			b := c.SendBlock(r, ranks)
			out[r] = c.Send.Slice(b.Lo, b.Hi)
		}
		if t.Recv.On(me == c.Root) != calls.Unused && t.Send.On(r == c.Root) != calls.Unused {
			b := c.RecvBlock(r, ranks)
			in[r] = c.Recv.Slice(b.Lo, b.Hi)
		}
	}
}

// Elements returns the number of elements of all blocks together, the same on all ranks. The
// number is 0 for LocalCounts, and for collectives that create communicators or allocate memory.
func (f *Fingerprint) Elements(ranks int) int {
	switch t := &calls.Table[f.Kind]; {
	case t.Recv.Layout == calls.Absent:
		return 0
	case (t.Send.Layout == calls.Even) != (t.Recv.Layout == calls.Even): // Count is the length of a single block
		return int(f.Count) * ranks
	}
	return int(f.Count)
}

// Longest returns the number of elements of the longest block, the same on all ranks.
func (c *Call) Longest(ranks int) int {
	switch t := &calls.Table[c.Kind]; {
	case c.Kind.LocalCounts():
		return 0
	case t.Send.Layout >= calls.Counted:
		return slices.Max(c.SendCounts)
	case t.Recv.Layout >= calls.Counted:
		return slices.Max(c.RecvCounts)
	case t.Send.PerRank() || t.Recv.PerRank():
		return c.Elements(ranks) / ranks
	}
	return int(c.Count)
}

// PartCount returns the Count of a call that handles a part of each of c's blocks: n elements of
// the longest block or, with counts, the sum of counts.
func (c *Call) PartCount(n, longest int, sendCounts, recvCounts []int) int64 {
	switch t := &calls.Table[c.Kind]; {
	case !c.Kind.Counted():
		return c.Count / int64(max(longest, 1)) * int64(n)
	case t.Send.Layout >= calls.Counted:
		return int64(total(sendCounts))
	}
	return int64(total(recvCounts))
}

// NumBlocks returns the number of blocks of Send and Recv together, the same on all ranks. A vector
// that is reduced in place counts once.
func (c *Call) NumBlocks(ranks int) int {
	t := &calls.Table[c.Kind]
	if !t.Send.PerRank() && !t.Recv.PerRank() {
		return 1
	}
	return blocksOf(&t.Send, ranks) + blocksOf(&t.Recv, ranks)
}

func total(counts []int) int {
	n := 0
	for _, k := range counts {
		n += k
	}
	return n
}
