package plan

import "fmt"

// Spares are the spare places of a job's nodes, for replacements of dead ranks. The ranks of the
// plan come first; ranks of spare places follow, by node. The zero Spares has no places.
type Spares struct {
	nodeOf    []int       // of the plan's ranks
	each      int         // spare places on each node
	used      []int       // spare places, by node
	originals map[int]int // by replacement, the plan's rank in its place
}

// Prepare makes each spare places on each node, beside ranks on the nodes of nodeOf.
func (s *Spares) Prepare(nodeOf []int, nodes, each int) {
	*s = Spares{nodeOf: nodeOf, each: each, used: make([]int, nodes)}
}

// Ranks returns the number of ranks, with all replacements.
func (s *Spares) Ranks() int { return len(s.nodeOf) + s.each*len(s.used) }

// Original returns the plan's rank in the place of a rank.
func (s *Spares) Original(rank int) int {
	if first, late := s.originals[rank]; late {
		return first
	}
	return rank
}

// Current returns the rank of the latest process in the place of a rank.
func (s *Spares) Current(rank int) int {
	for late, first := range s.originals {
		if first == s.Original(rank) {
			rank = max(rank, late) // places are taken in order
		}
	}
	return rank
}

// Replaces reports whether a rank is a replacement.
func (s *Spares) Replaces(rank int) bool {
	_, late := s.originals[rank]
	return late
}

// Name names a rank for the user.
func (s *Spares) Name(rank int) string {
	if first, late := s.originals[rank]; late {
		return fmt.Sprintf("the replacement of rank %d", first)
	}
	return fmt.Sprintf("rank %d", rank)
}

// Node returns the node of a rank.
func (s *Spares) Node(rank int) int {
	if rank < len(s.nodeOf) {
		return s.nodeOf[rank]
	}
	return (rank - len(s.nodeOf)) / s.each
}

// Lacks explains why a node, of this name, has not enough places, one of them for a rank, "" if
// it has.
func (s *Spares) Lacks(node, need, rank int, name string, gone bool) string {
	if s.used[node]+need <= s.each && !gone {
		return ""
	}
	return fmt.Sprintf("rank %d cannot be replaced: %d of %d spare places on %s are used, and %d needed (-spares)",
		rank, s.used[node], s.each, name, need)
}

// Next returns the rank of the next spare place on a node.
func (s *Spares) Next(node int) int { return len(s.nodeOf) + node*s.each + s.used[node] }

// Take gives the next place on its node to the replacement of a rank of the plan.
func (s *Spares) Take(original int) {
	node := s.nodeOf[original]
	s.Learn(s.Next(node), original)
	s.used[node]++
}

// Learn notes that a rank has replaced a dead one, on any node.
func (s *Spares) Learn(by, dead int) {
	if s.originals == nil {
		s.originals = map[int]int{}
	}
	s.originals[by] = s.Original(dead)
}
