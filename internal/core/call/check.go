package call

import (
	"errors"
	"fmt"
	"slices"

	"gompi/internal/calls"
	"gompi/internal/mem"
)

// ErrArgument: an argument is wrong. Nothing was sent and nothing is broken.
var ErrArgument = errors.New("bad argument")

// BadArgument returns an ErrArgument with a text.
func BadArgument(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrArgument, fmt.Sprintf(format, args...))
}

// Check returns an error if c's arguments are wrong on a rank, before anything is sent. Arguments
// without a meaning on this rank are ignored. Check completes the Fingerprint of a call of
// mem.Opaque.
func (c *Call) Check(rank, ranks int) error {
	if c.Root < 0 || c.Root >= ranks {
		return fmt.Errorf("root %d: want 0 to %d", c.Root, ranks-1)
	}
	t, root := &calls.Table[c.Kind], rank == c.Root
	if t.Reduces && !c.Op.defined(c.Type) {
		return c.Op.refusal(c.Type)
	}
	if c.Recv.IsReadOnly() && t.Recv.On(root).Changes() {
		return fmt.Errorf("recv %s", ReadOnly)
	}
	if c.Type == mem.Opaque {
		if c.Size = uint32(c.ElemSize()); !t.Reduces {
			return fmt.Errorf("elements of %d bytes that have no type: want uint8 where no function combines them", c.Size)
		}
	}
	if t.Send.On(root) == calls.Unused || t.Recv.On(root) == calls.Unused {
		return nil // there is nothing for the other to agree with
	}
	if c.Kind == calls.Alltoallw {
		return c.checkEach(rank, ranks)
	}
	if c.Send.Type() != c.Recv.Type() && c.Send.Type() != mem.NoType && c.Recv.Type() != mem.NoType {
		return fmt.Errorf("send has %v elements and recv %v: want one type", c.Send.Type(), c.Recv.Type())
	}
	if c.Type == mem.Opaque && c.Recv.Type() == mem.Opaque && !mem.Alike(c.Send, c.Recv) {
		return fmt.Errorf("send has elements of %d bytes and recv of %d: want one size", c.Send.ElemSize(),
			c.Recv.ElemSize())
	}
	if t.Send.Layout != calls.Whole || t.Recv.Layout != calls.Whole || c.Send.Len() != c.Recv.Len() {
		if err := c.checkLengths(t, rank, ranks); err != nil {
			return err
		}
	}
	if mem.Overlap(c.Send, c.Recv) {
		return c.checkOverlap(t, rank, ranks)
	}
	return nil
}

// ReadOnly is the error of a receive buffer whose elements share bytes.
const ReadOnly = "has a layout that names elements twice: want one that names each once"

// checkEach checks the buffers of an alltoallw. A rank receives the data for itself with the type
// that it sent. In place, the data to a rank and the data from it share a buffer.
func (c *Call) checkEach(rank, ranks int) error {
	send, recv := c.Each.Send, c.Each.Recv
	if len(send) != ranks || len(recv) != ranks {
		return fmt.Errorf("%d buffers to send and %d to receive: want %d", len(send), len(recv), ranks)
	}
	for i := range ranks {
		if recv[i].IsReadOnly() {
			return fmt.Errorf("recv[%d] %s", i, ReadOnly)
		}
		if mem.Overlap(send[i], recv[i]) && !mem.Same(send[i], recv[i]) {
			return fmt.Errorf("send[%d] and recv[%d] overlap: want the same slice, or one apart from the other", i, i)
		}
	}
	if s, r := BlockOf(send[rank]), BlockOf(recv[rank]); s != r {
		return fmt.Errorf("recv[rank] has %v: want %v (send[rank])", r, s)
	}
	return nil
}

// checkLengths compares the lengths of Send and Recv with each other and with the counts.
func (c *Call) checkLengths(t *calls.Traits, rank, ranks int) error {
	s, r := c.Send.Len(), c.Recv.Len()
	switch send, recv := t.Send.Layout, t.Recv.Layout; {
	case send == calls.Even && recv == calls.Even && s%ranks != 0:
		return fmt.Errorf("send has %d elements: want a multiple of the %d ranks", s, ranks)
	case send == recv && recv <= calls.Even:
		return checkLength("recv", r, "send", s)
	case send == calls.Even:
		return checkLength("send", s, "ranks x recv", ranks*r)
	case recv == calls.Even:
		return checkLength("recv", r, "ranks x send", ranks*s)
	}
	return c.checkCounts(t, rank, ranks)
}

// checkCounts is checkLengths where there are counts.
func (c *Call) checkCounts(t *calls.Traits, rank, ranks int) error {
	s, r := c.Send.Len(), c.Recv.Len()
	if t.Send.PerRank() {
		if err := checkBlocks("send", s, ranks, c.SendCounts, c.SendDispls); err != nil {
			return err
		}
	}
	if t.Recv.PerRank() {
		if err := checkBlocks("recv", r, ranks, c.RecvCounts, c.RecvDispls); err != nil {
			return err
		}
	}
	if t.Send.Layout == calls.Counted && s != total(c.SendCounts) {
		return checkLength("send", s, "sum of counts", total(c.SendCounts))
	}
	switch {
	case t.Recv.Layout == calls.Whole:
		return checkLength("recv", r, "counts[rank]", c.SendCounts[rank])
	case t.Send.Layout == calls.Whole:
		return checkLength("send", s, "counts[rank]", c.RecvCounts[rank])
	}
	return checkLength("counts[rank]", c.RecvCounts[rank], "sendCounts[rank]", c.SendCounts[rank])
}

func checkLength(what string, got int, of string, want int) error {
	if got != want {
		return fmt.Errorf("%s has %d elements: want %d (%s)", what, got, want, of)
	}
	return nil
}

// checkBlocks checks the blocks of a vector of n elements: a block per rank, inside the vector.
// nil displacements mean that the blocks follow each other.
func checkBlocks(what string, n, ranks int, counts, displs []int) error {
	if len(counts) != ranks || displs != nil && len(displs) != ranks {
		return fmt.Errorf("%d counts and %d displacements for %s: want %d, displacements may be nil", len(counts),
			len(displs), what, ranks)
	}
	end := 0
	for i, k := range counts {
		if displs != nil {
			end = displs[i]
		}
		if k < 0 || end < 0 || end > n || k > n-end {
			return fmt.Errorf("block %d of %s has %d elements from %d on: want it inside the %d there are", i,
				what, k, end, n)
		}
		end += k
	}
	return nil
}

// checkOverlap allows overlapping Send and Recv only in the in-place form of the collective. If
// only one of them has a block per rank, the other must be this rank's block of that vector.
// Otherwise both must be the same vector.
func (c *Call) checkOverlap(t *calls.Traits, rank, ranks int) error {
	const want = "send and recv overlap: want "
	switch send, recv := t.Send.PerRank(), t.Recv.PerRank(); {
	case send == recv && !mem.Same(c.Send, c.Recv):
		return errors.New(want + "the same slice, or one apart from the other")
	case send == recv && !c.sameBlocks(ranks):
		return errors.New("send and recv are the same slice: want the same counts and displacements for both")
	case send == recv, recv && startsIn(c.Send, c.Recv, c.RecvBlock(rank, ranks).Lo), send && c.inOwnBlock(rank, ranks):
		return nil
	case recv:
		return errors.New(want + "send to be this rank's block of recv, or apart from it")
	case !t.Reduces:
		return errors.New(want + "recv to be this rank's block of send, or apart from it")
	case !startsIn(c.Recv, c.Send, 0):
		return errors.New(want + "recv to be this rank's block of send, the beginning of send, or apart from it")
	}
	return nil
}

// sameBlocks reports whether the blocks of Send and Recv have equal lengths and, unless empty,
// equal places.
func (c *Call) sameBlocks(ranks int) bool {
	if !slices.Equal(c.SendCounts, c.RecvCounts) {
		return false
	}
	for r, n := range c.SendCounts {
		if n > 0 && c.SendBlock(r, ranks) != c.RecvBlock(r, ranks) {
			return false
		}
	}
	return true
}

// inOwnBlock reports whether Recv begins at the rank's own block of Send.
func (c *Call) inOwnBlock(rank, ranks int) bool {
	return startsIn(c.Recv, c.Send, c.SendBlock(rank, ranks).Lo)
}

// startsIn reports whether short begins at element i of long.
func startsIn(short, long mem.Buffer, i int) bool {
	return short.Addr() == long.Addr()+uintptr(i*long.ElemSize())
}

// Overwrites reports whether a rank receives where blocks of Send for other ranks lie. Check allows
// c.
func (c *Call) Overwrites(rank, ranks int) bool {
	t := &calls.Table[c.Kind]
	if !t.Send.PerRank() || t.Send.On(rank == c.Root) == calls.Unused || !mem.Overlap(c.Send, c.Recv) {
		return false
	}
	return t.Recv.PerRank() || !c.inOwnBlock(rank, ranks)
}
