package topology

import (
	"context"
	"slices"

	"gompi/comm"
	"gompi/internal/core"
	"gompi/internal/core/topology"
)

// A Neighborhood is a communicator whose ranks have neighbors: sources, from which they receive,
// and destinations, to which they send. It has all methods of its Comm; but Split, Dup, Shrink and
// the like return a plain Comm.
//
// All ranks of a Neighborhood call its neighbor collectives in the same order, like collectives,
// each from one goroutine at a time.
type Neighborhood struct {
	*comm.Comm
	// Messages is the communicator of the neighbor collectives: the program's receives from
	// AnySource in Comm never see their messages.
	Messages *comm.Comm

	in *topology.Neighborhood
}

// over returns n as a public Neighborhood, nil for nil.
func over(n *topology.Neighborhood, err error) (*Neighborhood, error) {
	if err != nil || n == nil {
		return nil, err
	}
	return &Neighborhood{(*comm.Comm)(n.Comm), (*comm.Comm)(n.Messages), n}, nil
}

// NewGraph returns a Neighborhood of all ranks of c, in which this rank receives from sources and
// sends to destinations (MPI_Dist_graph_create_adjacent, without weights). It is collective over c.
// If this rank has r for a destination k times, r must have this rank for a source k times;
// otherwise a neighbor collective waits until its context ends. Several messages between two ranks
// keep their order.
func NewGraph(ctx context.Context, c *comm.Comm, sources, destinations []int) (*Neighborhood, error) {
	return over(topology.NewGraph(ctx, (*core.Comm)(c), sources, destinations))
}

// Sources returns the ranks from which this rank receives, in the order of blocks. In a Cart, these
// are one place back and one forward in the first dimension, then in the second, and so on, with
// comm.ProcNull beyond the grid (MPI_Dist_graph_neighbors; MPI-4.1 section 8.6).
func (n *Neighborhood) Sources() []int { return slices.Clone(n.in.Sources) }

// Destinations returns the ranks to which this rank sends, in the order of blocks. In a Cart they
// equal Sources.
func (n *Neighborhood) Destinations() []int { return slices.Clone(n.in.Destinations) }

// Degrees returns the numbers of sources and destinations, with comm.ProcNull included.
func (n *Neighborhood) Degrees() (in, out int) { return len(n.in.Sources), len(n.in.Destinations) }

// Revoke revokes n on all ranks, like a Comm's Revoke: ranks in a neighbor collective get
// ErrRevoked, too.
func (n *Neighborhood) Revoke(reason string) { n.in.Revoke(reason) }

// Close closes n: its Comm, and its Messages.
func (n *Neighborhood) Close(ctx context.Context) error { return n.in.Close(ctx) }
