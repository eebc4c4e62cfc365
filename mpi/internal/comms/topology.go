package comms

import (
	"gompi/internal/core"
	"gompi/internal/core/topology"
)

// A Topology defines which ranks of a communicator are neighbors. The zero Topology is none.
type Topology struct {
	Kind                   int
	*topology.Neighborhood // of this rank

	Index, Edges                      []int // of a graph: of all ranks, as MPI_Graph_create gets them
	SourceWeights, DestinationWeights []int // of a distributed graph, nil if unweighted
}

// With returns a communicator over t's, nil if t has no neighbors for this rank.
func (c *Comm) With(t Topology, err error) (*Comm, error) {
	if err != nil || t.Neighborhood == nil {
		return nil, err
	}
	d, err := c.adopt(t.Comm, nil)
	d.Topology = t
	return d, err
}

// over returns t over other communicators.
func (t Topology) over(c, messages *core.Comm) Topology {
	n := *t.Neighborhood
	n.Comm, n.Messages = c, messages
	t.Neighborhood = &n
	return t
}

// Degrees returns the numbers of ranks that this rank receives from and sends to.
func (c *Comm) Degrees() (in, out int) {
	if c.Topology.Kind == 0 {
		return 0, 0
	}
	return len(c.Topology.Sources), len(c.Topology.Destinations)
}
