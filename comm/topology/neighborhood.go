package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gompi/comm"
)

// A Neighborhood is a communicator whose ranks have neighbors: sources, which they receive from,
// and destinations, which they send to. What its Comm has is there too; but Split, Dup, Shrink and
// the like return a plain Comm.
//
// Its neighbor collectives are called by all ranks of it in the same order, as collectives are, and
// by one goroutine at a time.
type Neighborhood struct {
	*comm.Comm
	// Messages is what the neighbor collectives travel in: the program's receives from AnySource in
	// Comm never see them.
	Messages *comm.Comm

	sources, destinations []int
	isGrid                bool
}

// NewGraph returns a Neighborhood of all ranks of c, in which this rank receives from sources and
// sends to destinations (MPI_Dist_graph_create_adjacent, without weights). It is collective over c.
// If this rank has r for a destination k times, r has this rank for a source k times: else a
// neighbor collective waits for its context. Of several messages between two ranks the first goes
// to the first place, and so on.
func NewGraph(ctx context.Context, c *comm.Comm, sources, destinations []int) (*Neighborhood, error) {
	if err := errors.Join(checkRanks(c, "sources", sources), checkRanks(c, "destinations", destinations)); err != nil {
		return nil, err
	}
	n := Neighborhood{sources: slices.Clone(sources), destinations: slices.Clone(destinations)}
	d, err := c.Dup(ctx)
	if err != nil {
		return nil, err
	}
	return n.over(ctx, d)
}

func checkRanks(c *comm.Comm, what string, ranks []int) error {
	for i, r := range ranks {
		if r < 0 || r >= c.Size() {
			return wrong(c, "newgraph", "%s[%d] is %d: want a rank, 0 to %d", what, i, r, c.Size()-1)
		}
	}
	return nil
}

// over returns n over d, which is closed if that fails.
func (n Neighborhood) over(ctx context.Context, d *comm.Comm) (*Neighborhood, error) {
	m, err := d.Dup(ctx)
	if err != nil {
		return nil, errors.Join(err, d.Close(ctx))
	}
	n.Comm, n.Messages = d, m
	return &n, nil
}

// Sources returns the ranks that this one receives from, in the order of blocks. Of a Cart that is
// one place back and one forward in the first dimension, then in the second, and so on, with
// comm.ProcNull where the grid ends (MPI_Dist_graph_neighbors; MPI-4.1 section 8.6).
func (n *Neighborhood) Sources() []int { return slices.Clone(n.sources) }

// Destinations returns the ranks that this one sends to, in the order of blocks: of a Cart the same
// as Sources.
func (n *Neighborhood) Destinations() []int { return slices.Clone(n.destinations) }

// Degrees returns how many sources and destinations there are, those that are comm.ProcNull
// included.
func (n *Neighborhood) Degrees() (in, out int) { return len(n.sources), len(n.destinations) }

// Revoke breaks n on all ranks, as that of a Comm does: those that wait in a neighbor collective
// get ErrRevoked, too.
func (n *Neighborhood) Revoke(reason string) {
	n.Comm.Revoke(reason)
	n.Messages.Revoke(reason)
}

// Close closes n: its Comm, and the one that its neighbor collectives travel in.
func (n *Neighborhood) Close(ctx context.Context) error {
	return errors.Join(n.Messages.Close(ctx), n.Comm.Close(ctx))
}

// wrong returns the error of a call on c whose arguments are wrong.
func wrong(c *comm.Comm, op, format string, args ...any) error {
	return &comm.Error{Op: op, Comm: c.Name(), Rank: c.Rank(), Peer: -1, Err: fmt.Errorf("%w: "+format, append([]any{comm.ErrArgument}, args...)...)}
}
