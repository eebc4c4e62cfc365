package topology

import (
	"context"
	"errors"
	"slices"

	"gompi/internal/core"
	"gompi/internal/mem"
)

// A Neighborhood is a communicator whose ranks have neighbors: sources, which they receive from,
// and destinations, which they send to.
type Neighborhood struct {
	Comm *core.Comm
	// Messages is the communicator that messages between neighbors travel in: the program's receives
	// from any source in Comm never see them.
	Messages *core.Comm
	// Sources and Destinations are in the order of blocks; in a grid both are the same.
	Sources, Destinations []int
	Grid                  *Grid // nil in a graph
}

// NewGraph returns a Neighborhood of all ranks of c, in which this rank receives from sources and
// sends to destinations. NewGraph is collective over c.
func NewGraph(ctx context.Context, c *core.Comm, sources, destinations []int) (*Neighborhood, error) {
	if err := errors.Join(checkRanks(c, "sources", sources), checkRanks(c, "destinations", destinations)); err != nil {
		return nil, err
	}
	n := Neighborhood{Sources: slices.Clone(sources), Destinations: slices.Clone(destinations)}
	d, err := c.Dup(ctx)
	if err != nil {
		return nil, err
	}
	return n.over(ctx, d)
}

func checkRanks(c *core.Comm, what string, ranks []int) error {
	for i, r := range ranks {
		if r < 0 || r >= c.Size() {
			return Wrong(c, "newgraph", "%s[%d] is %d: want a rank, 0 to %d", what, i, r, c.Size()-1)
		}
	}
	return nil
}

// over returns n over d, which is closed if that fails.
func (n Neighborhood) over(ctx context.Context, d *core.Comm) (*Neighborhood, error) {
	m, err := d.Dup(ctx)
	if err != nil {
		return nil, errors.Join(err, d.Close(ctx))
	}
	n.Comm, n.Messages = d, m
	return &n, nil
}

// Start starts a message for each neighbor, none for ProcNull. The Requests of the receives come
// first, in the order of Sources, then the Requests of the sends. Sends start first: a waiting
// neighbor has its message on its way, and a receive often finds its message there and need not
// be posted.
func (n *Neighborhood) Start(op string, send, recv []mem.Buffer) ([]core.Request, error) {
	if err := n.Fit(op, send, recv); err != nil {
		return nil, err
	}
	rs := make([]core.Request, len(recv)+len(send))
	for i, to := range n.Destinations {
		if to != core.ProcNull {
			rs[len(recv)+i] = n.Messages.Isend(to, n.TagTo(i), send[i])
		}
	}
	for i, from := range n.Sources {
		if from != core.ProcNull {
			rs[i] = n.Messages.Irecv(from, n.TagFrom(i), recv[i])
		}
	}
	return rs, nil
}

// Fit returns an error unless there is a buffer for each neighbor.
func (n *Neighborhood) Fit(op string, send, recv []mem.Buffer) error {
	if len(send) == len(n.Destinations) && len(recv) == len(n.Sources) {
		return nil
	}
	return Wrong(n.Comm, op, "%d buffers in send and %d in recv: want %d and %d, as many as destinations and sources",
		len(send), len(recv), len(n.Destinations), len(n.Sources))
}

// TagFrom returns the tag of a message from source i. In a grid the tag is that place: two places
// in a dimension may have the same rank, perhaps this rank.
func (n *Neighborhood) TagFrom(i int) int {
	if n.Grid != nil {
		return i
	}
	return 0
}

// TagTo returns the tag of a message to destination i. In a grid its receiver has this rank at the
// other place in the same dimension.
func (n *Neighborhood) TagTo(i int) int { return n.TagFrom(i ^ 1) }

// Revoke breaks both communicators on all ranks.
func (n *Neighborhood) Revoke(reason string) {
	n.Comm.Revoke(reason)
	n.Messages.Revoke(reason)
}

// Close closes both communicators.
func (n *Neighborhood) Close(ctx context.Context) error {
	return errors.Join(n.Messages.Close(ctx), n.Comm.Close(ctx))
}

// Wrong returns the error of a call on c whose arguments are wrong.
func Wrong(c *core.Comm, op, format string, args ...any) error {
	return &core.Error{Op: op, Comm: c.Name(), Rank: c.Rank(), Peer: -1, Err: core.BadArgument(format, args...)}
}
