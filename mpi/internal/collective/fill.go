package collective

import (
	"cmp"
	"slices"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/mem"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/dtypes"
	"gompi/mpi/internal/errs"
)

// Args are the arguments of a collective besides the communicator. A count and a type of both
// buffers are Recv's.
type Args struct {
	Send, Recv Side
	Op         *dtypes.Op
	Root       int
}

// Fill fills in p, a k. Which blocks this rank reads and stores is in k's row of package calls.
func (p *Plan) Fill(k calls.Kind, a *Args) error {
	row := &calls.Table[k]
	p.o.Kind = k
	isRoot, err := p.isRoot(k, a.Root)
	switch {
	case err != nil:
		return err
	case row.Recv.Layout == calls.Absent:
		return p.barrier()
	case p.c.Inter != nil && row.Rooted && a.Root == abi.ProcNull:
		return across{p.c.Inter, k}.exchange(p, nil, nil)
	case row.Reduces:
		return p.reduction(k, a, isRoot)
	}
	from := &a.Send
	if row.Send.Layout == row.Recv.Layout && from.Buf == abi.InPlace {
		from = &a.Recv
	}
	send, recv := p.vectorOf(&row.Send, isRoot, from, p.c.Peers()), p.vectorOf(&row.Recv, isRoot, &a.Recv, p.c.Peers())
	if p.c.Inter != nil {
		stays(row, isRoot, &send, &recv)
	}
	if err := p.check(&send, &recv); err != nil {
		return err
	}
	if p.c.Inter != nil {
		return across{p.c.Inter, k}.blocks(p, &send, &recv, a.Root)
	}
	if row.Recv.Layout == calls.Apart {
		p.o.Alltoallw(send.each(p), recv.each(p))
		return nil
	}
	x := call.Arguments{Root: a.Root}
	x.Send, x.SendCounts, x.SendDispls = send.bytes(p)
	x.Recv, x.RecvCounts, x.RecvDispls = recv.bytes(p)
	inOneBuffer := a.Send.Buf == abi.InPlace || a.Recv.Buf == abi.InPlace
	if !inOneBuffer && mem.Overlap(x.Send, x.Recv) && !meet(send.each(p), recv.each(p)) {
		send.aside = true
		x.Send, x.SendCounts, x.SendDispls = send.bytes(p)
	}
	p.o.Fill(k, &x)
	return nil
}

// meet reports whether a buffer of a overlaps one of b. Interleaved blocks without a common byte,
// possible on a communicator of one rank, do not overlap.
func meet(a, b []mem.Buffer) bool {
	return slices.ContainsFunc(a, func(x mem.Buffer) bool {
		return slices.ContainsFunc(b, func(y mem.Buffer) bool { return mem.Overlap(x, y) })
	})
}

// isRoot returns whether this rank is the root of a k, or rank 0 if k has none.
func (p *Plan) isRoot(k calls.Kind, root int) (bool, error) {
	if err := p.c.Check(); err != nil {
		return false, err
	}
	x, rank, size := p.c.Inter, p.c.P2P.Rank(), p.c.P2P.Size()
	switch {
	case k == calls.Scan, k == calls.Exscan:
		return rank == 0, p.c.CheckIntra()
	case !k.Rooted():
		return rank == 0, nil
	case x != nil:
		return root == abi.RootHere, checkRemoteRoot(x, root)
	case root < 0 || root >= size:
		return false, errs.New(errs.Root, "root %d is not from 0 to %d", root, size-1)
	}
	return root == rank, nil
}

// check checks the vectors in use. It replaces MPI_IN_PLACE for a single block by this rank's block
// of the other vector.
func (p *Plan) check(send, recv *vector) error {
	if send.layout == calls.Apart {
		return checkApart(send, recv)
	}
	first, second := recv, send
	if send.layout > recv.layout || send.layout == calls.Placed {
		first, second = send, recv
	}
	if err := first.check(); err != nil {
		return err
	}
	inUse := first.role != calls.Unused && second.role != calls.Unused
	if inUse && second.layout == calls.Whole && second.buf == abi.InPlace && p.c.Inter == nil {
		second.buf, second.n, second.t = first.block(p.c.P2P.Rank())
		second.role = calls.Read // a block that the root keeps is not stored
	}
	return second.check()
}

// checkApart checks both vectors, block by block.
func checkApart(send, recv *vector) error {
	for i := range send.counts {
		if err := cmp.Or(send.checkApart(i), recv.checkApart(i)); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) barrier() error {
	if p.c.Inter != nil {
		return across{p.c.Inter, calls.Barrier}.barrier(p)
	}
	p.o.Barrier()
	return nil
}
