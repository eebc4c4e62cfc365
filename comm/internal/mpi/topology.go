package mpi

import (
	"slices"

	"gompi/comm"
)

// A topology says which ranks of a communicator are neighbors. The zero topology is none.
type topology struct {
	kind int
	cart *cart
	// Of a graph: of all ranks, as MPI_Graph_create gets them.
	index, edges []int
	// Of a distributed graph: of this rank.
	sources, destinations             []int
	sourceWeights, destinationWeights []int // nil if it has none

	messages *comm.Comm // of neighbor collectives
}

// with gives c, which may be nil, a topology.
func (c *Comm) with(t topology, err error) (*Comm, error) {
	if err != nil || c == nil {
		return c, err
	}
	if t.messages, err = c.p2p.Dup(forever); err != nil {
		return nil, err
	}
	c.topology = t
	return c, nil
}

func checkTopology(c *Comm, kind int) error {
	if err := checkComm(c); err != nil {
		return err
	}
	if c.topology.kind != kind {
		return wrong(errTopology, "the communicator has no such topology")
	}
	return nil
}

// neighbors returns the ranks that this rank receives from and sends to, in order, MPI_PROC_NULL
// where a grid ends.
func (c *Comm) neighbors() (in, out []int) {
	switch t := &c.topology; t.kind {
	case cartTopology:
		for dim := range t.cart.dims {
			for _, by := range []int{-1, 1} {
				in = append(in, t.cart.shifted(c.rank(), dim, by))
			}
		}
		return in, in
	case graphTopology:
		in = t.of(c.rank())
		return in, in
	default:
		return t.sources, t.destinations
	}
}

func TopoTest(c *Comm) (int, error) {
	if err := checkComm(c); err != nil {
		return 0, err
	}
	if c.topology.kind == 0 {
		return undefined, nil
	}
	return c.topology.kind, nil
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

func GraphCreate(c *Comm, nnodes int, index, edges Array, reorder bool) (*Comm, error) {
	if err := checkIntra(c); err != nil {
		return nil, err
	}
	if nnodes < 0 || nnodes > c.p2p.Size() {
		return nil, wrong(errArg, "nnodes is %d: want 0 to %d", nnodes, c.p2p.Size())
	}
	t := topology{kind: graphTopology, index: index.list(nnodes)}
	if nnodes > 0 {
		t.edges = edges.list(t.index[nnodes-1])
	}
	if !slices.IsSorted(t.index) || nnodes > 0 && t.index[0] < 0 {
		return nil, wrong(errArg, "the index does not grow")
	}
	for _, e := range t.edges {
		if e < 0 || e >= nnodes {
			return nil, wrong(errArg, "edge to %d is not from 0 to %d", e, nnodes-1)
		}
	}
	return c.firstOf(nnodes, t)
}

// firstOf makes a communicator of the first n ranks, with a topology.
func (c *Comm) firstOf(n int, t topology) (*Comm, error) {
	color := 0
	if c.p2p.Rank() >= n {
		color = comm.Undefined
	}
	d, err := c.adopt(c.p2p.Split(forever, color, c.p2p.Rank()))
	return d.with(t, err)
}

func GraphdimsGet(c *Comm) (nnodes, nedges int, err error) {
	if err := checkTopology(c, graphTopology); err != nil {
		return 0, 0, err
	}
	return len(c.topology.index), len(c.topology.edges), nil
}

func GraphGet(c *Comm, maxIndex, maxEdges int, index, edges Array) error {
	if err := checkTopology(c, graphTopology); err != nil {
		return err
	}
	index.store(maxIndex, c.topology.index)
	edges.store(maxEdges, c.topology.edges)
	return nil
}

func GraphMap(c *Comm, nnodes int, index, edges Array) (int, error) { return mapFirst(c, nnodes) }

// mapFirst is how ranks are numbered in a new topology: as they are.
func mapFirst(c *Comm, n int) (int, error) {
	if err := checkComm(c); err != nil {
		return 0, err
	}
	if n < 0 || n > c.peers() {
		return 0, wrong(errArg, "%d ranks are not among the %d there are", n, c.peers())
	}
	if c.rank() >= n {
		return undefined, nil
	}
	return c.rank(), nil
}

func GraphNeighbors(c *Comm, rank, most int, neighbors Array) error {
	if err := checkTopology(c, graphTopology); err != nil {
		return err
	}
	if rank < 0 || rank >= len(c.topology.index) {
		return wrong(errRank, "rank %d is not from 0 to %d", rank, len(c.topology.index)-1)
	}
	neighbors.store(most, c.topology.of(rank))
	return nil
}

func GraphNeighborsCount(c *Comm, rank int) (int, error) {
	if err := checkTopology(c, graphTopology); err != nil {
		return 0, err
	}
	if rank < 0 || rank >= len(c.topology.index) {
		return 0, wrong(errRank, "rank %d is not from 0 to %d", rank, len(c.topology.index)-1)
	}
	return len(c.topology.of(rank)), nil
}

// ---- Distributed graphs ----

// weightsOf returns n weights, nil if there are none.
func weightsOf(a Array, n int) []int {
	if a == unweighted {
		return nil
	}
	if a == weightsEmpty {
		return []int{}
	}
	return a.list(n)
}

func DistGraphCreateAdjacent(c *Comm, indegree int, sources, sourceWeights Array, outdegree int, destinations, destinationWeights Array, info *Info, reorder bool) (*Comm, error) {
	if err := checkIntra(c); err != nil {
		return nil, err
	}
	if indegree < 0 || outdegree < 0 {
		return nil, wrong(errArg, "the degrees are %d and %d: want 0 or more", indegree, outdegree)
	}
	t := topology{
		kind: distGraphTopology, sources: sources.list(indegree), destinations: destinations.list(outdegree),
		sourceWeights: weightsOf(sourceWeights, indegree), destinationWeights: weightsOf(destinationWeights, outdegree),
	}
	if err := c.checkRanks(append(slices.Clone(t.sources), t.destinations...)); err != nil {
		return nil, err
	}
	d, err := c.adopt(c.p2p.Dup(forever))
	return d.with(t, err)
}

func (c *Comm) checkRanks(ranks []int) error {
	for _, r := range ranks {
		if r < 0 || r >= c.p2p.Size() {
			return wrong(errRank, "rank %d is not from 0 to %d", r, c.p2p.Size()-1)
		}
	}
	return nil
}

// An edge of a distributed graph, as ranks send it each other.
const edgeWords = 3 // source, destination, weight

// DistGraphCreate has each rank get all edges, of which it keeps its own.
func DistGraphCreate(c *Comm, n int, sources, degrees, destinations, weights Array, info *Info, reorder bool) (*Comm, error) {
	if err := checkIntra(c); err != nil {
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
	t := topology{kind: distGraphTopology}
	if anyWeighted {
		t.sourceWeights, t.destinationWeights = []int{}, []int{}
	}
	for ; len(all) > 0; all = all[edgeWords:] {
		source, destination, weight := int(all[0]), int(all[1]), int(all[2])
		if destination == c.p2p.Rank() {
			t.sources = append(t.sources, source)
			if anyWeighted {
				t.sourceWeights = append(t.sourceWeights, weight)
			}
		}
		if source == c.p2p.Rank() {
			t.destinations = append(t.destinations, destination)
			if anyWeighted {
				t.destinationWeights = append(t.destinationWeights, weight)
			}
		}
	}
	d, err := c.adopt(c.p2p.Dup(forever))
	return d.with(t, err)
}

// edgesOf returns the edges that this rank gives.
func (c *Comm) edgesOf(n int, sources, degrees, destinations, weights Array) (edges []int64, weighted bool, err error) {
	if n < 0 {
		return nil, false, wrong(errArg, "n is %d: want 0 or more", n)
	}
	total := 0
	for _, d := range degrees.list(n) {
		if d < 0 {
			return nil, false, wrong(errArg, "a degree is %d: want 0 or more", d)
		}
		total += d
	}
	from, to, w := sources.list(n), destinations.list(total), weightsOf(weights, total)
	if err := c.checkRanks(append(slices.Clone(from), to...)); err != nil {
		return nil, false, err
	}
	at := 0
	for i, d := range degrees.list(n) {
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
	heads := make([]int64, 2*c.p2p.Size())
	if err := c.p2p.Allgather(forever, comm.Of([]int64{int64(len(mine)), boolWord(weighted)}), comm.Of(heads)); err != nil {
		return nil, false, err
	}
	counts, total, any := make([]int, c.p2p.Size()), 0, false
	for r := range counts {
		counts[r] = int(heads[2*r])
		total += counts[r]
		any = any || heads[2*r+1] != 0
	}
	all := make([]int64, total)
	return all, any, c.p2p.Allgatherv(forever, comm.Of(mine), comm.Of(all), counts, nil)
}

func DistGraphNeighborsCount(c *Comm) (indegree, outdegree int, weighted bool, err error) {
	if err := checkTopology(c, distGraphTopology); err != nil {
		return 0, 0, false, err
	}
	t := &c.topology
	return len(t.sources), len(t.destinations), t.sourceWeights != nil || t.destinationWeights != nil, nil
}

func DistGraphNeighbors(c *Comm, maxIn int, sources, sourceWeights Array, maxOut int, destinations, destinationWeights Array) error {
	if err := checkTopology(c, distGraphTopology); err != nil {
		return err
	}
	t := &c.topology
	sources.store(maxIn, t.sources)
	destinations.store(maxOut, t.destinations)
	if sourceWeights != unweighted && sourceWeights != weightsEmpty {
		sourceWeights.store(maxIn, t.sourceWeights)
	}
	if destinationWeights != unweighted && destinationWeights != weightsEmpty {
		destinationWeights.store(maxOut, t.destinationWeights)
	}
	return nil
}
