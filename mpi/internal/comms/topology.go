package comms

import (
	"gompi/internal/core"
	"gompi/internal/core/topology"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/errs"
)

// A Topology defines which ranks of a communicator are neighbors. The zero Topology is none.
type Topology struct {
	Kind                   int
	*topology.Neighborhood // of this rank

	Index, Edges                      []int // of a graph: of all ranks, as MPI_Graph_create gets them
	SourceWeights, DestinationWeights []int // of a distributed graph, nil if unweighted
}

// CheckGrid, CheckGraph and CheckDistGraph return an error unless c has that topology.
func (c *Comm) CheckGrid() error      { return c.checkTopology(abi.CartTopology) }
func (c *Comm) CheckGraph() error     { return c.checkTopology(abi.GraphTopology) }
func (c *Comm) CheckDistGraph() error { return c.checkTopology(abi.DistGraphTopology) }

func (c *Comm) checkTopology(kind int) error {
	if c != nil && c.Topology.Kind != kind {
		return errs.New(errs.Topology, "the communicator has no such topology")
	}
	return c.Check()
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
