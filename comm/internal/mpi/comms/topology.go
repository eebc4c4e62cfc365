package comms

import (
	"slices"

	"gompi/comm"
	"gompi/comm/internal/mpi/abi"
	"gompi/comm/internal/mpi/errs"
	"gompi/comm/internal/mpi/infos"
)

// A topology says which ranks of a communicator are neighbors. The zero topology is none.
type topology struct {
	Kind int
	cart *cart
	// Of a graph: of all ranks, as MPI_Graph_create gets them.
	index, edges []int
	// Of a distributed graph: of this rank.
	sources, destinations             []int
	sourceWeights, destinationWeights []int // nil if it has none

	Messages *comm.Comm // of neighbor collectives
}

// with gives c, which may be nil, a topology.
func (c *Comm) with(t topology, err error) (*Comm, error) {
	if err != nil || c == nil {
		return c, err
	}
	if t.Messages, err = c.P2P.Dup(Forever); err != nil {
		return nil, err
	}
	c.Topology = t
	return c, nil
}

func checkTopology(c *Comm, kind int) error {
	if err := Check(c); err != nil {
		return err
	}
	if c.Topology.Kind != kind {
		return errs.New(errs.Topology, "the communicator has no such topology")
	}
	return nil
}

// Neighbors returns the ranks that this rank receives from and sends to, in order, MPI_PROC_NULL
// where a grid ends.
func (c *Comm) Neighbors() (in, out []int) {
	switch t := &c.Topology; t.Kind {
	case abi.CartTopology:
		for dim := range t.cart.dims {
			for _, by := range []int{-1, 1} {
				in = append(in, t.cart.shifted(c.rank(), dim, by))
			}
		}
		return in, in
	case abi.GraphTopology:
		in = t.of(c.rank())
		return in, in
	default:
		return t.sources, t.destinations
	}
}

// Place returns the tag of a message for place i.
func (t *topology) Place(i int) int {
	if t.Kind == abi.CartTopology {
		return i
	}
	return 0
}

func TopoTest(c *Comm) (int, error) {
	if err := Check(c); err != nil {
		return 0, err
	}
	if c.Topology.Kind == 0 {
		return abi.Undefined, nil
	}
	return c.Topology.Kind, nil
}

// ---- Graphs ----

// of returns the neighbors of a rank in a graph.
func (t *topology) of(rank int) []int {
	first := 0
	if rank > 0 {
		first = t.index[rank-1]
	}
	return t.edges[first:t.index[rank]]
}

func GraphCreate(c *Comm, nnodes int, index, edges abi.Array, reorder bool) (*Comm, error) {
	if err := CheckIntra(c); err != nil {
		return nil, err
	}
	if nnodes < 0 || nnodes > c.P2P.Size() {
		return nil, errs.New(errs.Arg, "nnodes is %d: want 0 to %d", nnodes, c.P2P.Size())
	}
	t := topology{Kind: abi.GraphTopology, index: index.List(nnodes)}
	if nnodes > 0 {
		t.edges = edges.List(t.index[nnodes-1])
	}
	if !slices.IsSorted(t.index) || nnodes > 0 && t.index[0] < 0 {
		return nil, errs.New(errs.Arg, "the index does not grow")
	}
	for _, e := range t.edges {
		if e < 0 || e >= nnodes {
			return nil, errs.New(errs.Arg, "edge to %d is not from 0 to %d", e, nnodes-1)
		}
	}
	return c.firstOf(nnodes, t)
}

// firstOf makes a communicator of the first n ranks, with a topology.
func (c *Comm) firstOf(n int, t topology) (*Comm, error) {
	color := 0
	if c.P2P.Rank() >= n {
		color = comm.Undefined
	}
	d, err := c.adopt(c.P2P.Split(Forever, color, c.P2P.Rank()))
	return d.with(t, err)
}

func GraphdimsGet(c *Comm) (nnodes, nedges int, err error) {
	if err := checkTopology(c, abi.GraphTopology); err != nil {
		return 0, 0, err
	}
	return len(c.Topology.index), len(c.Topology.edges), nil
}

func GraphGet(c *Comm, maxIndex, maxEdges int, index, edges abi.Array) error {
	if err := checkTopology(c, abi.GraphTopology); err != nil {
		return err
	}
	index.Store(maxIndex, c.Topology.index)
	edges.Store(maxEdges, c.Topology.edges)
	return nil
}

func GraphMap(c *Comm, nnodes int, index, edges abi.Array) (int, error) { return mapFirst(c, nnodes) }

// mapFirst is how ranks are numbered in a new topology: as they are.
func mapFirst(c *Comm, n int) (int, error) {
	if err := Check(c); err != nil {
		return 0, err
	}
	if n < 0 || n > c.Peers() {
		return 0, errs.New(errs.Arg, "%d ranks are not among the %d there are", n, c.Peers())
	}
	if c.rank() >= n {
		return abi.Undefined, nil
	}
	return c.rank(), nil
}

func GraphNeighbors(c *Comm, rank, most int, neighbors abi.Array) error {
	if err := checkTopology(c, abi.GraphTopology); err != nil {
		return err
	}
	if rank < 0 || rank >= len(c.Topology.index) {
		return errs.New(errs.Rank, "rank %d is not from 0 to %d", rank, len(c.Topology.index)-1)
	}
	neighbors.Store(most, c.Topology.of(rank))
	return nil
}

func GraphNeighborsCount(c *Comm, rank int) (int, error) {
	if err := checkTopology(c, abi.GraphTopology); err != nil {
		return 0, err
	}
	if rank < 0 || rank >= len(c.Topology.index) {
		return 0, errs.New(errs.Rank, "rank %d is not from 0 to %d", rank, len(c.Topology.index)-1)
	}
	return len(c.Topology.of(rank)), nil
}

// ---- Distributed graphs ----

// weightsOf returns n weights, nil if there are none.
func weightsOf(a abi.Array, n int) []int {
	if a == abi.Unweighted {
		return nil
	}
	if a == abi.WeightsEmpty {
		return []int{}
	}
	return a.List(n)
}

func DistGraphCreateAdjacent(c *Comm, indegree int, sources, sourceWeights abi.Array, outdegree int, destinations, destinationWeights abi.Array, info *infos.Info, reorder bool) (*Comm, error) {
	if err := CheckIntra(c); err != nil {
		return nil, err
	}
	if indegree < 0 || outdegree < 0 {
		return nil, errs.New(errs.Arg, "the degrees are %d and %d: want 0 or more", indegree, outdegree)
	}
	t := topology{
		Kind: abi.DistGraphTopology, sources: sources.List(indegree), destinations: destinations.List(outdegree),
		sourceWeights: weightsOf(sourceWeights, indegree), destinationWeights: weightsOf(destinationWeights, outdegree),
	}
	if err := c.checkRanks(append(slices.Clone(t.sources), t.destinations...)); err != nil {
		return nil, err
	}
	d, err := c.adopt(c.P2P.Dup(Forever))
	return d.with(t, err)
}

func (c *Comm) checkRanks(ranks []int) error {
	for _, r := range ranks {
		if r < 0 || r >= c.P2P.Size() {
			return errs.New(errs.Rank, "rank %d is not from 0 to %d", r, c.P2P.Size()-1)
		}
	}
	return nil
}

// An edge of a distributed graph, as ranks send it each other.
const edgeWords = 3 // source, destination, weight

// DistGraphCreate has each rank get all edges, of which it keeps its own.
func DistGraphCreate(c *Comm, n int, sources, degrees, destinations, weights abi.Array, info *infos.Info, reorder bool) (*Comm, error) {
	if err := CheckIntra(c); err != nil {
		return nil, err
	}
	mine, weighted, err := c.edgesOf(n, sources, degrees, destinations, weights)
	if err != nil {
		return nil, err
	}
	all, anyWeighted, err := c.allEdges(mine, weighted)
	if err != nil {
		return nil, err
	}
	t := topology{Kind: abi.DistGraphTopology}
	if anyWeighted {
		t.sourceWeights, t.destinationWeights = []int{}, []int{}
	}
	for ; len(all) > 0; all = all[edgeWords:] {
		source, destination, weight := int(all[0]), int(all[1]), int(all[2])
		if destination == c.P2P.Rank() {
			t.sources = append(t.sources, source)
			if anyWeighted {
				t.sourceWeights = append(t.sourceWeights, weight)
			}
		}
		if source == c.P2P.Rank() {
			t.destinations = append(t.destinations, destination)
			if anyWeighted {
				t.destinationWeights = append(t.destinationWeights, weight)
			}
		}
	}
	d, err := c.adopt(c.P2P.Dup(Forever))
	return d.with(t, err)
}

// edgesOf returns the edges that this rank gives.
func (c *Comm) edgesOf(n int, sources, degrees, destinations, weights abi.Array) (edges []int64, weighted bool, err error) {
	if n < 0 {
		return nil, false, errs.New(errs.Arg, "n is %d: want 0 or more", n)
	}
	total := 0
	for _, d := range degrees.List(n) {
		if d < 0 {
			return nil, false, errs.New(errs.Arg, "a degree is %d: want 0 or more", d)
		}
		total += d
	}
	from, to, w := sources.List(n), destinations.List(total), weightsOf(weights, total)
	if err := c.checkRanks(append(slices.Clone(from), to...)); err != nil {
		return nil, false, err
	}
	at := 0
	for i, d := range degrees.List(n) {
		for range d {
			weight := int64(0)
			if len(w) > 0 {
				weight = int64(w[at])
			}
			edges = append(edges, int64(from[i]), int64(to[at]), weight)
			at++
		}
	}
	return edges, w != nil, nil
}

// allEdges returns the edges of all ranks, and whether any gives weights.
func (c *Comm) allEdges(mine []int64, weighted bool) ([]int64, bool, error) {
	heads := make([]int64, 2*c.P2P.Size())
	if err := c.P2P.Allgather(Forever, comm.Of([]int64{int64(len(mine)), boolWord(weighted)}), comm.Of(heads)); err != nil {
		return nil, false, err
	}
	counts, total, any := make([]int, c.P2P.Size()), 0, false
	for r := range counts {
		counts[r] = int(heads[2*r])
		total += counts[r]
		any = any || heads[2*r+1] != 0
	}
	all := make([]int64, total)
	return all, any, c.P2P.Allgatherv(Forever, comm.Of(mine), comm.Of(all), counts, nil)
}

func DistGraphNeighborsCount(c *Comm) (indegree, outdegree int, weighted bool, err error) {
	if err := checkTopology(c, abi.DistGraphTopology); err != nil {
		return 0, 0, false, err
	}
	t := &c.Topology
	return len(t.sources), len(t.destinations), t.sourceWeights != nil || t.destinationWeights != nil, nil
}

func DistGraphNeighbors(c *Comm, maxIn int, sources, sourceWeights abi.Array, maxOut int, destinations, destinationWeights abi.Array) error {
	if err := checkTopology(c, abi.DistGraphTopology); err != nil {
		return err
	}
	t := &c.Topology
	sources.Store(maxIn, t.sources)
	destinations.Store(maxOut, t.destinations)
	if sourceWeights != abi.Unweighted && sourceWeights != abi.WeightsEmpty {
		sourceWeights.Store(maxIn, t.sourceWeights)
	}
	if destinationWeights != abi.Unweighted && destinationWeights != abi.WeightsEmpty {
		destinationWeights.Store(maxOut, t.destinationWeights)
	}
	return nil
}
