package topology

import (
	"context"
	"fmt"
	"slices"

	"gompi/comm"
	"gompi/internal/core"
	"gompi/internal/core/topology"
)

// NeighborAllgather sends send to every destination. Block i of recv, of the same length, gets the
// data of source i (MPI_Neighbor_allgather). Here and in the other neighbor collectives, the block
// of a source ProcNull is unchanged.
//
// A neighbor collective waits only for the neighbors. If ctx ends before they have come, n's
// Messages are revoked on all ranks, like the Comm of a collective. A call allocates lists as long
// as the number of neighbors.
func (n *Neighborhood) NeighborAllgather(ctx context.Context, send, recv comm.Buffer) error {
	const op = "neighborallgather"
	if want := send.Len() * len(n.in.Sources); len(n.in.Destinations) > 0 && recv.Len() != want {
		return topology.Wrong(n.in.Comm, op, "recv has %d elements: want %d (sources x send)", recv.Len(), want)
	}
	into, err := n.even(op, "recv", recv, len(n.in.Sources))
	if err != nil {
		return err
	}
	return n.exchange(ctx, op, n.toAll(send), into)
}

// NeighborAllgatherv is NeighborAllgather with blocks of counts[i] elements at displs[i] of recv
// (MPI_Neighbor_allgatherv). nil displs mean contiguous blocks. counts[i] is the length of source
// i's send; a shorter one changes only the beginning of the block.
func (n *Neighborhood) NeighborAllgatherv(ctx context.Context, send, recv comm.Buffer, counts, displs []int) error {
	const op = "neighborallgatherv"
	into, err := n.blocks(op, "recv", recv, counts, displs, len(n.in.Sources))
	if err != nil {
		return err
	}
	return n.exchange(ctx, op, n.toAll(send), into)
}

// NeighborAlltoall sends block i of send to destination i; block i of recv gets the data of source
// i (MPI_Neighbor_alltoall). The blocks of each are equally long.
func (n *Neighborhood) NeighborAlltoall(ctx context.Context, send, recv comm.Buffer) error {
	const op = "neighboralltoall"
	from, err := n.even(op, "send", send, len(n.in.Destinations))
	if err != nil {
		return err
	}
	into, err := n.even(op, "recv", recv, len(n.in.Sources))
	if err != nil {
		return err
	}
	return n.exchange(ctx, op, from, into)
}

// NeighborAlltoallv is NeighborAlltoall with blocks of any length: sendCounts[i] elements at
// sendDispls[i] of send go to destination i, and counts[i] elements from source i go to displs[i]
// of recv (MPI_Neighbor_alltoallv). nil displacements mean contiguous blocks.
func (n *Neighborhood) NeighborAlltoallv(ctx context.Context, send comm.Buffer, sendCounts, sendDispls []int,
	recv comm.Buffer, counts, displs []int) error {
	const op = "neighboralltoallv"
	from, err := n.blocks(op, "send", send, sendCounts, sendDispls, len(n.in.Destinations))
	if err != nil {
		return err
	}
	into, err := n.blocks(op, "recv", recv, counts, displs, len(n.in.Sources))
	if err != nil {
		return err
	}
	return n.exchange(ctx, op, from, into)
}

// NeighborAlltoallw is NeighborAlltoall with a Buffer for each neighbor, of any type and length:
// send[i] goes to destination i, and recv[i] gets the data of source i, as many elements of the
// same type (MPI_Neighbor_alltoallw).
func (n *Neighborhood) NeighborAlltoallw(ctx context.Context, send, recv []comm.Buffer) error {
	return n.exchange(ctx, "neighboralltoallw", send, recv)
}

// IneighborAlltoallw starts a NeighborAlltoallw (MPI_Ineighbor_alltoallw). It is complete when all
// Requests are complete: comm.WaitAll waits for them. The receives' Requests come first, in the
// order of sources, then the sends'. Requests with ProcNull are null.
func (n *Neighborhood) IneighborAlltoallw(send, recv []comm.Buffer) ([]comm.Request, error) {
	rs, err := n.in.Start("ineighboralltoallw", send, recv)
	if err != nil {
		return nil, err
	}
	all := make([]comm.Request, len(rs))
	for i, r := range rs {
		all[i] = comm.Request(r)
	}
	return all, nil
}

// exchange is a neighbor collective.
func (n *Neighborhood) exchange(ctx context.Context, op string, send, recv []comm.Buffer) error {
	if ctx.Err() != nil { // before anything is sent
		return fmt.Errorf("%s: %w", op, context.Cause(ctx))
	}
	rs, err := n.in.Start(op, send, recv)
	if err != nil {
		return err
	}
	if err := core.WaitAll(ctx, rs); err != nil {
		n.giveUp(rs, err)
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}

// giveUp ends the incomplete requests, so that the caller may use the buffers.
func (n *Neighborhood) giveUp(rs []core.Request, cause error) {
	if slices.ContainsFunc(rs, func(r core.Request) bool { return !r.Done() }) {
		n.Messages.Revoke(fmt.Sprintf("gave up on a neighbor collective: %v", cause))
		_ = core.WaitAll(context.Background(), rs) // their error is the cause
	}
}

// toAll returns send for every destination.
func (n *Neighborhood) toAll(send comm.Buffer) []comm.Buffer {
	return slices.Repeat([]comm.Buffer{send}, len(n.in.Destinations))
}

// even returns k blocks of b of equal length.
func (n *Neighborhood) even(op, what string, b comm.Buffer, k int) ([]comm.Buffer, error) {
	if k > 0 && b.Len()%k != 0 {
		return nil, topology.Wrong(n.in.Comm, op,
			"%s has %d elements: want a multiple of %d, a block for each neighbor", what, b.Len(), k)
	}
	return n.blocks(op, what, b, slices.Repeat([]int{b.Len() / max(k, 1)}, k), nil, k)
}

// blocks returns k blocks of b: counts[i] elements at displs[i], which is ignored if counts[i] is
// 0.
func (n *Neighborhood) blocks(op, what string, b comm.Buffer, counts, displs []int, k int) ([]comm.Buffer, error) {
	if len(counts) != k || displs != nil && len(displs) != k {
		return nil, topology.Wrong(n.in.Comm, op,
			"%d counts and %d displacements for %s: want %d, displacements may be nil", len(counts),
			len(displs), what, k)
	}
	all, at := make([]comm.Buffer, k), 0
	for i, c := range counts {
		if displs != nil && c != 0 {
			at = displs[i]
		}
		if c < 0 || at < 0 || at > b.Len() || c > b.Len()-at {
			return nil, topology.Wrong(n.in.Comm, op,
				"block %d of %s has %d elements from %d on: want it inside the %d there are", i, what, c, at, b.Len())
		}
		all[i] = b.Slice(at, at+c)
		at += c
	}
	return all, nil
}
