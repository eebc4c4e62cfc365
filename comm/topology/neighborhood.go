package topology

import (
	"context"
	"slices"

	"gompi/comm"
	"gompi/internal/core"
	"gompi/internal/core/topology"
)

// A Neighborhood is a communicator whose ranks have neighbors: sources, which they receive from,
// and destinations, which they send to. What its Comm has is there too; but Split, Dup, Shrink and
// the like return a plain Comm.
//
// Its neighbor collectives are called by all ranks of it in the same order, as collectives are, and
// by one goroutine at a time.
type Neighborhood struct {
	*comm.Comm
	// Messages is the communicator that the neighbor collectives travel in: the program's receives
	// from AnySource in Comm never see them.
	Messages *comm.Comm

	in *topology.Neighborhood
}

// over returns n as programs have it, nil where it is nil.
func over(n *topology.Neighborhood, err error) (*Neighborhood, error) {
	if err != nil || n == nil {
		return nil, err
	}
	return &Neighborhood{(*comm.Comm)(n.Comm), (*comm.Comm)(n.Messages), n}, nil
}

// NewGraph returns a Neighborhood of all ranks of c, in which this rank receives from sources and
// sends to destinations (MPI_Dist_graph_create_adjacent, without weights). It is collective over c.
// If this rank has r for a destination k times, r has this rank for a source k times: else a
// neighbor collective waits for its context. Of several messages between two ranks the first goes
// to the first place, and so on.
func NewGraph(ctx context.Context, c *comm.Comm, sources, destinations []int) (*Neighborhood, error) {
	return over(topology.NewGraph(ctx, (*core.Comm)(c), sources, destinations))
}

// Sources returns the ranks that this one receives from, in the order of blocks. Of a Cart that is
// one place back and one forward in the first dimension, then in the second, and so on, with
// comm.ProcNull where the grid ends (MPI_Dist_graph_neighbors; MPI-4.1 section 8.6).
func (n *Neighborhood) Sources() []int { return slices.Clone(n.in.Sources) }

// Destinations returns the ranks that this one sends to, in the order of blocks: of a Cart the same
// as Sources.
func (n *Neighborhood) Destinations() []int { return slices.Clone(n.in.Destinations) }

// Degrees returns how many sources and destinations there are, those that are comm.ProcNull
// included.
func (n *Neighborhood) Degrees() (in, out int) { return len(n.in.Sources), len(n.in.Destinations) }

// Revoke breaks n on all ranks, as that of a Comm does: ranks that wait in a neighbor collective
// get ErrRevoked, too.
func (n *Neighborhood) Revoke(reason string) { n.in.Revoke(reason) }

// Close closes n: its Comm, and the one that its neighbor collectives travel in.
func (n *Neighborhood) Close(ctx context.Context) error { return n.in.Close(ctx) }
