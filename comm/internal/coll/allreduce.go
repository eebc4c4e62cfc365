package coll

import "gompi/internal/mem"

// Allreduce combines every rank's send into everybody's recv, the same bits on
// all ranks. In place: recv is send.
func Allreduce(p Peers, t *Table, send, recv mem.Buffer, op Op) error {
	if p.Size() == 1 {
		return move(recv, send)
	}
	return choose(t, kAllreduce, allreduces, p.Size(), int64(send.Size()), op).run(p, send, recv, op)
}

var allreduces = []algorithm[func(p Peers, send, recv mem.Buffer, op Op) error]{
	{method{name: "rdouble", doc: "recursive doubling: fewest rounds", ordered: true,
		cost: func(l load) cost {
			m := doublingMessages(l.ranks)
			return cost{depth(l.ranks), m, int64(m) * l.bytes()}
		}}, allreduceDoubling},
	{method{name: "direct", doc: "everyone sends to everyone and combines all: one step", ordered: true,
		cost: func(l load) cost {
			m := l.ranks * (l.ranks - 1)
			return cost{1, m, int64(m) * l.bytes()}
		}}, allreduceDirect},
	{method{name: "tree", doc: "reduce, then bcast, by binomial trees: fewest messages", ordered: true,
		cost: func(l load) cost {
			n := 2 * (l.ranks - 1)
			return cost{2 * tree{size: l.ranks}.height(), n, int64(n) * l.bytes()}
		}}, allreduceTree},
	{method{name: "halving", doc: "reduce-scatter by halving, allgather by doubling: fewest bytes", ordered: true,
		cost: func(l load) cost { c := cubesCost(l); return c.plus(c) }}, allreduceHalving},
	{method{name: "circulant", doc: "reduce-scatter and allgather by the circulant pattern: fewest bytes for any number of ranks",
		cost: func(l load) cost {
			c := circulantCost(l, l.bytes())
			return c.plus(c)
		}}, allreduceCirculant},
	{method{name: "ring", doc: "reduce-scatter and allgather around a ring: fewest bytes between hosts",
		cost: func(l load) cost {
			p := l.ranks
			return cost{2 * (p - 1), 2 * p * (p - 1), 2 * int64(p-1) * l.bytes()}
		}}, allreduceRing},
}

var allreduceRules = []rule{
	{alg: "rdouble"},
	{from: 128 << 10, alg: "halving"},
	{ranks: 3, to: 32 << 10, alg: "direct"},
	{ranks: 3, from: 32 << 10, alg: "halving"},
	{ranks: 3, from: 256 << 10, alg: "ring"},
	{ranks: 4, to: 32 << 10, alg: "rdouble"},
	{ranks: 4, from: 256 << 10, alg: "circulant"},
	{ranks: 32, to: 8 << 10, alg: "tree"},
	{ranks: 32, from: 8 << 10, alg: "circulant"},
	{ranks: 4, to: 32 << 10, pow2: true, alg: "rdouble"},
	{ranks: 4, from: 32 << 10, pow2: true, alg: "halving"},
	{crowded: true, ranks: 3, to: 8 << 10, alg: "direct"},
	{crowded: true, ranks: 5, to: 1 << 20, alg: "tree"},
	{remote: true, ranks: 3, to: 32 << 10, alg: "direct"},
	{remote: true, ranks: 16, to: 32 << 10, alg: "rdouble"},
	{spread: true, to: 32 << 10, alg: "rdouble"},
	{spread: true, from: 32 << 10, alg: "halving"},
	{spread: true, ranks: 24, from: 16 << 10, alg: "halving"},
}

// allreduceDoubling exchanges whole vectors with the neighbour block of 1, 2,
// 4, ... ranks, combining in the tree's order: after round k every rank has the
// result of its block of 2^(k+1). A rank whose partner does not exist, because
// the last block is short, is served by another rank of that block, which then
// sends more than once. ceil(log2 p) rounds of n bytes for a power of two.
// Fastest allreduce in simulation: loopback, 16 ranks, 8 bytes.
func allreduceDoubling(p Peers, send, recv mem.Buffer, op Op) error {
	r, n := p.Rank(), p.Size()
	steps := 0 // in which this rank receives
	for d := 1; d < n; d *= 2 {
		if lo := (r/d ^ 1) * d; lo < n {
			steps++
		}
	}
	s, err := newSwing(p, send, recv, steps)
	if err != nil {
		return err
	}
	for d := 1; d < n; d *= 2 {
		if lo := (r/d ^ 1) * d; lo < n {
			own := s.now
			exchange(p, d, lo, s.next(), own, op)
			if err := p.Wait(); err != nil {
				return err
			}
		}
	}
	return op.Finish(recv, n)
}

// doublingMessages counts, for each step, the ranks whose neighbour block is not
// empty: each receives one message.
func doublingMessages(p int) (m int) {
	for d := 1; d < p; d *= 2 {
		for r := range p {
			if (r/d^1)*d < p {
				m++
			}
		}
	}
	return m
}

// exchange starts a step of allreduceDoubling: dst becomes the combination of
// own, the result of r's block of d ranks, with that of the block at lo.
func exchange(p Peers, d, lo int, dst, own mem.Buffer, op Op) {
	r, n := p.Rank(), p.Size()
	i := r % d
	theirs, mine := min(d, n-lo), min(d, n-r+i) // ranks in the two blocks
	for j := i; j < theirs; j += mine {
		p.Isend(lo+j, own)
	}
	p.IrecvReduce(lo+i%theirs, dst, own, op.Base(), lo < r)
}

// allreduceDirect sends every vector to every rank and combines all there, in
// the tree's order: one step, p-1 messages and (p-1)n bytes per rank.
// Fastest allreduce in simulation: loopback, 3 ranks, 8 bytes.
func allreduceDirect(p Peers, send, recv mem.Buffer, op Op) error {
	r, n, size := p.Rank(), p.Size(), send.Len()
	all := p.Scratch(send, n*size)
	at := func(i int) mem.Buffer { return all.Slice(i*size, (i+1)*size) }
	for d := 1; d < n; d++ {
		p.Irecv(behind(r, d, n), at(behind(r, d, n)))
		p.Isend(ahead(r, d, n), send)
	}
	if err := move(at(r), send); err != nil {
		return err
	}
	if err := p.Wait(); err != nil {
		return err
	}
	c := Combination{Op: op, Operand: at, Spare: func(_ mem.Buffer, i, _ int) mem.Buffer { return at(i) }}
	if _, err := c.Of(recv, 0, n); err != nil {
		return err
	}
	return op.Finish(recv, n)
}

// allreduceTree reduces to rank 0 and broadcasts: 2(p-1) messages, the fewest
// there can be, in 2 ceil(log2 p) rounds.
// Fastest allreduce in simulation: crowded, 16 ranks, 4 KiB.
func allreduceTree(p Peers, send, recv mem.Buffer, op Op) error {
	if err := reduceTree(p, 0, send, recv, op); err != nil {
		return err
	}
	if p.Rank() == 0 {
		if err := op.Finish(recv, p.Size()); err != nil {
			return err
		}
	}
	return bcastTree(p, 0, recv)
}

// allreduceHalving reduces and scatters by halving, then gathers by doubling:
// 2n(p-1)/p bytes per rank in 2 log2 p rounds for a power of two.
// Rabenseifner: Optimization of Collective Reduction Operations (2004).
// Fastest allreduce in simulation: cluster, 64 ranks, 1 MiB.
func allreduceHalving(p Peers, send, recv mem.Buffer, op Op) error {
	if err := reduceCubes(p, send, recv, op); err != nil {
		return err
	}
	r, n := p.Rank(), p.Size()
	if _, c, _ := cubesOf(0, n); r < c.size() {
		lo, hi := interval(recv.Len(), r, c.dim)
		if err := op.Finish(recv.Slice(lo, hi), n); err != nil {
			return err
		}
	}
	return gatherCubes(p, recv)
}

// allreduceCirculant reduces and scatters, then gathers, by the circulant
// pattern: 2n(p-1)/p bytes per rank in 2 ceil(log2 p) rounds for every p. Needs
// a commuting operator.
// Fastest allreduce in simulation: network, 7 ranks, 1 MiB.
func allreduceCirculant(p Peers, send, recv mem.Buffer, op Op) error {
	b := evenly(send.Len(), p.Size())
	mine := b.of(recv, p.Rank())
	if err := reduceCirculant(p, b, send, recv, mine, op); err != nil {
		return err
	}
	if err := op.Finish(mine, p.Size()); err != nil {
		return err
	}
	return gatherCirculant(p, b, recv)
}

// allreduceRing reduces and scatters around a ring, then gathers: 2n(p-1)/p
// bytes per rank in 2(p-1) rounds, between neighbours only. Needs a commuting
// operator. Patarasu, Yuan: Bandwidth optimal all-reduce algorithms (2009).
// Fastest allreduce in simulation: loopback, 3 ranks, 4 MiB.
func allreduceRing(p Peers, send, recv mem.Buffer, op Op) error {
	b := evenly(send.Len(), p.Size())
	place := func(i int) mem.Buffer { return b.of(recv, i) }
	if err := reduceRing(p, b, send, place, op); err != nil {
		return err
	}
	if err := op.Finish(b.of(recv, p.Rank()), p.Size()); err != nil {
		return err
	}
	return gatherRing(p, b, recv)
}
