package comms

import (
	"context"
	"slices"

	"gompi/internal/core"
	"gompi/internal/core/call"
	"gompi/internal/core/topology"
	"gompi/internal/mem"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/infos"
)

// A Topology says which ranks of a communicator are neighbors. The zero Topology is none.
type Topology struct {
	Kind                   int
	*topology.Neighborhood // of this rank

	index, edges                      []int // of a graph: of all ranks, as MPI_Graph_create gets them
	sourceWeights, destinationWeights []int // of a distributed graph, nil if unweighted
}

// with returns a communicator over t's.
func (c *Comm) with(t Topology, err error) (*Comm, error) {
	if err != nil {
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

func checkTopology(c *Comm, kind int) error {
	if err := Check(c); err != nil {
		return err
	}
	if c.Topology.Kind != kind {
		return errs.New(errs.Topology, "the communicator has no such topology")
	}
	return nil
}

// Degrees returns how many ranks this rank receives from and sends to.
func (c *Comm) Degrees() (in, out int) {
	if c.Topology.Kind == 0 {
		return 0, 0
	}
	return len(c.Topology.Sources), len(c.Topology.Destinations)
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
func (t *Topology) of(rank int) []int {
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
	t := Topology{Kind: abi.GraphTopology, index: index.List(nnodes)}
	if !slices.IsSorted(t.index) || nnodes > 0 && t.index[0] < 0 {
		return nil, errs.New(errs.Arg, "the index does not grow")
	}
	if nnodes > 0 {
		n := t.index[nnodes-1]
		if n > 0 && edges == 0 {
			return nil, errs.New(errs.Arg, "the edges are NULL: want %d", n)
		}
		t.edges = edges.List(n)
	}
	for _, e := range t.edges {
		if e < 0 || e >= nnodes {
			return nil, errs.New(errs.Arg, "edge to %d is not from 0 to %d", e, nnodes-1)
		}
	}
	color := 0
	if c.P2P.Rank() >= nnodes {
		color = core.Undefined
	}
	ctx := In("MPI_Graph_create")
	members, err := c.P2P.Split(ctx, color, c.P2P.Rank())
	if err != nil || members == nil {
		return nil, err
	}
	defer CloseWhenIdle(members)
	all := t.of(members.Rank())
	t.Neighborhood, err = topology.NewGraph(ctx, members, all, all)
	return c.with(t, err)
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
	if indegree < 0 || outdegree < 0 || indegree > 0 && sources == 0 || outdegree > 0 && destinations == 0 {
		return nil, errs.New(errs.Arg, "the degrees are %d and %d: want 0 or more, and as many neighbors", indegree, outdegree)
	}
	return c.distGraph(In("MPI_Dist_graph_create_adjacent"), sources.List(indegree), destinations.List(outdegree),
		weightsOf(sourceWeights, indegree), weightsOf(destinationWeights, outdegree))
}

func (c *Comm) distGraph(ctx context.Context, from, to, fromWeights, toWeights []int) (*Comm, error) {
	if err := c.checkRanks(slices.Concat(from, to)); err != nil {
		return nil, err
	}
	n, err := topology.NewGraph(ctx, c.P2P, from, to)
	return c.with(Topology{Kind: abi.DistGraphTopology, Neighborhood: n, sourceWeights: fromWeights, destinationWeights: toWeights}, err)
}

func (c *Comm) checkRanks(ranks []int) error {
	for _, r := range ranks {
		if r < 0 || r >= c.P2P.Size() {
			return errs.New(errs.Rank, "rank %d is not from 0 to %d", r, c.P2P.Size()-1)
		}
	}
	return nil
}

// The words of an edge of a distributed graph, as ranks send it each other.
const edgeWords = 3 // source, destination, weight

// DistGraphCreate sends all edges to each rank, which keeps its own.
func DistGraphCreate(c *Comm, n int, sources, degrees, destinations, weights abi.Array, info *infos.Info, reorder bool) (*Comm, error) {
	if err := CheckIntra(c); err != nil {
		return nil, err
	}
	mine, weighted, err := c.edgesOf(n, sources, degrees, destinations, weights)
	if err != nil {
		return nil, err
	}
	ctx := In("MPI_Dist_graph_create")
	all, anyWeighted, err := c.allEdges(ctx, mine, weighted)
	if err != nil {
		return nil, err
	}
	var from, to, fromWeights, toWeights []int
	if anyWeighted {
		fromWeights, toWeights = []int{}, []int{}
	}
	for ; len(all) > 0; all = all[edgeWords:] {
		source, destination, weight := int(all[0]), int(all[1]), int(all[2])
		if destination == c.P2P.Rank() {
			from = append(from, source)
			if anyWeighted {
				fromWeights = append(fromWeights, weight)
			}
		}
		if source == c.P2P.Rank() {
			to = append(to, destination)
			if anyWeighted {
				toWeights = append(toWeights, weight)
			}
		}
	}
	return c.distGraph(ctx, from, to, fromWeights, toWeights)
}

// edgesOf returns the edges that this rank gives.
func (c *Comm) edgesOf(n int, sources, degrees, destinations, weights abi.Array) (edges []int64, weighted bool, err error) {
	if n < 0 || n > 0 && (sources == 0 || degrees == 0) {
		return nil, false, errs.New(errs.Arg, "n is %d: want 0 or more, and as many sources and degrees", n)
	}
	total := 0
	for _, d := range degrees.List(n) {
		if d < 0 {
			return nil, false, errs.New(errs.Arg, "a degree is %d: want 0 or more", d)
		}
		total += d
	}
	if total > 0 && destinations == 0 {
		return nil, false, errs.New(errs.Arg, "the destinations are NULL: want %d", total)
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
func (c *Comm) allEdges(ctx context.Context, mine []int64, weighted bool) ([]int64, bool, error) {
	heads := make([]int64, 2*c.P2P.Size())
	if err := c.P2P.Do(ctx, new(call.Call).Allgather(mem.Of([]int64{int64(len(mine)), boolWord(weighted)}), mem.Of(heads))); err != nil {
		return nil, false, err
	}
	counts, total, any := make([]int, c.P2P.Size()), 0, false
	for r := range counts {
		counts[r] = int(heads[2*r])
		total += counts[r]
		any = any || heads[2*r+1] != 0
	}
	all := make([]int64, total)
	return all, any, c.P2P.Do(ctx, new(call.Call).Allgatherv(mem.Of(mine), mem.Of(all), counts, nil))
}

func DistGraphNeighborsCount(c *Comm) (indegree, outdegree int, weighted bool, err error) {
	if err := checkTopology(c, abi.DistGraphTopology); err != nil {
		return 0, 0, false, err
	}
	t := &c.Topology
	indegree, outdegree = c.Degrees()
	return indegree, outdegree, t.sourceWeights != nil || t.destinationWeights != nil, nil
}

func DistGraphNeighbors(c *Comm, maxIn int, sources, sourceWeights abi.Array, maxOut int, destinations, destinationWeights abi.Array) error {
	if err := checkTopology(c, abi.DistGraphTopology); err != nil {
		return err
	}
	t := &c.Topology
	sources.Store(maxIn, t.Sources)
	destinations.Store(maxOut, t.Destinations)
	if sourceWeights != abi.Unweighted && sourceWeights != abi.WeightsEmpty {
		sourceWeights.Store(maxIn, t.sourceWeights)
	}
	if destinationWeights != abi.Unweighted && destinationWeights != abi.WeightsEmpty {
		destinationWeights.Store(maxOut, t.destinationWeights)
	}
	return nil
}
