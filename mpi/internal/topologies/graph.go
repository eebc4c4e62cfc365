// Package topologies has MPI's topologies of communicators: grids, graphs and distributed graphs,
// over core/topology.
package topologies

import (
	"context"
	"slices"

	"gompi/internal/core"
	"gompi/internal/core/call"
	"gompi/internal/core/topology"
	"gompi/internal/mem"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/infos"
)

func TopoTest(c *comms.Comm) (int, error) {
	if c.Topology.Kind == 0 {
		return abi.Undefined, nil
	}
	return c.Topology.Kind, nil
}

// ---- Graphs ----

// neighborsOf returns the neighbors of a rank in a graph.
func neighborsOf(t *comms.Topology, rank int) []int {
	first := 0
	if rank > 0 {
		first = t.Index[rank-1]
	}
	return t.Edges[first:t.Index[rank]]
}

func GraphCreate(c *comms.Comm, nnodes int, index, edges abi.Array, reorder bool) (*comms.Comm, error) {
	if nnodes < 0 || nnodes > c.P2P.Size() {
		return nil, errs.New(errs.Arg, "nnodes is %d: want 0 to %d", nnodes, c.P2P.Size())
	}
	t := comms.Topology{Kind: abi.GraphTopology, Index: index.List(nnodes)}
	if !slices.IsSorted(t.Index) || nnodes > 0 && t.Index[0] < 0 {
		return nil, errs.New(errs.Arg, "the index does not grow")
	}
	if nnodes > 0 {
		n := t.Index[nnodes-1]
		if n > 0 && edges == 0 {
			return nil, errs.New(errs.Arg, "the edges are NULL: want %d", n)
		}
		t.Edges = edges.List(n)
	}
	for _, e := range t.Edges {
		if e < 0 || e >= nnodes {
			return nil, errs.New(errs.Arg, "edge to %d is not from 0 to %d", e, nnodes-1)
		}
	}
	color := 0
	if c.P2P.Rank() >= nnodes {
		color = core.Undefined
	}
	ctx := comms.In("MPI_Graph_create")
	members, err := c.P2P.Split(ctx, color, c.P2P.Rank())
	if err != nil || members == nil {
		return nil, err
	}
	defer comms.CloseWhenIdle(members)
	all := neighborsOf(&t, members.Rank())
	t.Neighborhood, err = topology.NewGraph(ctx, members, all, all)
	return c.With(t, err)
}

func GraphdimsGet(c *comms.Comm) (nnodes, nedges int, err error) {
	return len(c.Topology.Index), len(c.Topology.Edges), nil
}

func GraphGet(c *comms.Comm, maxIndex, maxEdges int, index, edges abi.Array) error {
	index.Store(maxIndex, c.Topology.Index)
	edges.Store(maxEdges, c.Topology.Edges)
	return nil
}

func GraphMap(c *comms.Comm, nnodes int, index, edges abi.Array) (int, error) {
	return mapFirst(c, nnodes)
}

// mapFirst is how ranks are numbered in a new topology: as they are.
func mapFirst(c *comms.Comm, n int) (int, error) {
	if n < 0 || n > c.Peers() {
		return 0, errs.New(errs.Arg, "%d ranks are not among the %d there are", n, c.Peers())
	}
	if c.Rank() >= n {
		return abi.Undefined, nil
	}
	return c.Rank(), nil
}

// graphNeighbors returns the neighbors of any rank of a graph.
func graphNeighbors(c *comms.Comm, rank int) ([]int, error) {
	if rank < 0 || rank >= len(c.Topology.Index) {
		return nil, errs.New(errs.Rank, "rank %d is not from 0 to %d", rank, len(c.Topology.Index)-1)
	}
	return neighborsOf(&c.Topology, rank), nil
}

func GraphNeighbors(c *comms.Comm, rank, most int, neighbors abi.Array) error {
	all, err := graphNeighbors(c, rank)
	if err == nil {
		neighbors.Store(most, all)
	}
	return err
}

func GraphNeighborsCount(c *comms.Comm, rank int) (int, error) {
	all, err := graphNeighbors(c, rank)
	return len(all), err
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

func DistGraphCreateAdjacent(c *comms.Comm, indegree int, sources, sourceWeights abi.Array,
	outdegree int, destinations, destinationWeights abi.Array, info *infos.Info, reorder bool) (*comms.Comm, error) {
	if indegree < 0 || outdegree < 0 || indegree > 0 && sources == 0 || outdegree > 0 && destinations == 0 {
		return nil, errs.New(errs.Arg, "the degrees are %d and %d: want 0 or more, and this many neighbors",
			indegree, outdegree)
	}
	ctx := comms.In("MPI_Dist_graph_create_adjacent")
	return distGraph(ctx, c, sources.List(indegree), destinations.List(outdegree),
		weightsOf(sourceWeights, indegree), weightsOf(destinationWeights, outdegree))
}

func distGraph(ctx context.Context, c *comms.Comm, from, to, fromWeights, toWeights []int) (*comms.Comm, error) {
	if err := checkRanks(c, slices.Concat(from, to)); err != nil {
		return nil, err
	}
	n, err := topology.NewGraph(ctx, c.P2P, from, to)
	return c.With(comms.Topology{Kind: abi.DistGraphTopology, Neighborhood: n,
		SourceWeights: fromWeights, DestinationWeights: toWeights}, err)
}

func checkRanks(c *comms.Comm, ranks []int) error {
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
func DistGraphCreate(c *comms.Comm, n int, sources, degrees, destinations, weights abi.Array,
	info *infos.Info, reorder bool) (*comms.Comm, error) {
	mine, weighted, err := edgesOf(c, n, sources, degrees, destinations, weights)
	if err != nil {
		return nil, err
	}
	ctx := comms.In("MPI_Dist_graph_create")
	all, anyWeighted, err := allEdges(ctx, c, mine, weighted)
	if err != nil {
		return nil, err
	}
	var from, to []int
	fromWeights, toWeights := []int{}, []int{}
	for ; len(all) > 0; all = all[edgeWords:] {
		source, destination, weight := int(all[0]), int(all[1]), int(all[2])
		if destination == c.P2P.Rank() {
			from, fromWeights = append(from, source), append(fromWeights, weight)
		}
		if source == c.P2P.Rank() {
			to, toWeights = append(to, destination), append(toWeights, weight)
		}
	}
	if !anyWeighted {
		fromWeights, toWeights = nil, nil
	}
	return distGraph(ctx, c, from, to, fromWeights, toWeights)
}

// edgesOf returns the edges that this rank gives.
func edgesOf(c *comms.Comm, n int, sources, degrees, destinations, weights abi.Array) (
	edges []int64, weighted bool, err error) {
	if n < 0 || n > 0 && (sources == 0 || degrees == 0) {
		return nil, false, errs.New(errs.Arg, "n is %d: want 0 or more, and n sources and degrees", n)
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
	if err := checkRanks(c, append(slices.Clone(from), to...)); err != nil {
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
func allEdges(ctx context.Context, c *comms.Comm, mine []int64, weighted bool) ([]int64, bool, error) {
	head, heads := []int64{int64(len(mine)), 0}, make([]int64, 2*c.P2P.Size())
	if weighted {
		head[1] = 1
	}
	if err := c.P2P.Do(ctx, new(call.Call).Allgather(mem.Of(head), mem.Of(heads))); err != nil {
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

func DistGraphNeighborsCount(c *comms.Comm) (indegree, outdegree int, weighted bool, err error) {
	indegree, outdegree = c.Degrees()
	return indegree, outdegree, c.Topology.SourceWeights != nil || c.Topology.DestinationWeights != nil, nil
}

func DistGraphNeighbors(c *comms.Comm, maxIn int, sources, sourceWeights abi.Array,
	maxOut int, destinations, destinationWeights abi.Array) error {
	sources.Store(maxIn, c.Topology.Sources)
	destinations.Store(maxOut, c.Topology.Destinations)
	if sourceWeights != abi.Unweighted && sourceWeights != abi.WeightsEmpty {
		sourceWeights.Store(maxIn, c.Topology.SourceWeights)
	}
	if destinationWeights != abi.Unweighted && destinationWeights != abi.WeightsEmpty {
		destinationWeights.Store(maxOut, c.Topology.DestinationWeights)
	}
	return nil
}
