package coll

import (
	"gompi/internal/core/call"
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// Allreduce combines all sends into all ranks' recv, the same bits on all. In place: recv is send.
func Allreduce(p Peers, alg path.Algorithm, send, recv mem.Buffer, op call.Op) error {
	if p.Size() == 1 {
		return move(recv, send)
	}
	return allreduces[alg](p, send, recv, op)
}

var allreduces = [path.NumAlgorithms]func(p Peers, send, recv mem.Buffer, op call.Op) error{
	path.RecursiveDoubling: allreduceDoubling,
	path.Binomial:          allreduceTree,
	path.Direct:            allreduceDirect,
	path.Halving:           allreduceHalving,
	path.Circulant:         allreduceCirculant,
}

// allreduceDoubling exchanges whole vectors with the neighbour block of 1, 2, 4, ... ranks,
// combining in the tree's order: after round k every rank has the result of its block of 2^(k+1).
// If a rank has no partner, because the last block is short, another rank of that block sends to it
// and so sends more than once. ceil(log2 p) rounds of n bytes for a power of two. Fastest allreduce
// in simulation: network, 64 ranks, 8 bytes.
func allreduceDoubling(p Peers, send, recv mem.Buffer, op call.Op) error {
	r, n := p.Rank(), p.Size()
	steps := 0 // in which this rank receives
	for d := 1; d < n; d *= 2 {
		if lo := (r/d ^ 1) * d; lo < n {
			steps++
		}
	}
	s, err := newPingPong(p, send, recv, steps)
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

// exchange starts a step of allreduceDoubling: it sets dst to the combination of own, the result of
// r's block of d ranks, with the result of the block that begins at rank lo.
func exchange(p Peers, d, lo int, dst, own mem.Buffer, op call.Op) {
	r, n := p.Rank(), p.Size()
	i := r % d
	theirs, mine := min(d, n-lo), min(d, n-r+i) // ranks in the two blocks
	p.IrecvReduce(lo+i%theirs, dst, own, op.Base(), lo < r)
	for j := i; j < theirs; j += mine {
		p.Isend(lo+j, own)
	}
}

// allreduceTree combines up the binomial tree of rank 0, and sends the result down it: p-1 messages
// of n bytes each way in all, so that most ranks wait once, and at most 2 ceil(log2 p) rounds.
// Fastest allreduce in simulation: oversubscribed, 512 ranks, 8 bytes.
func allreduceTree(p Peers, send, recv mem.Buffer, op call.Op) error {
	const root = 0
	if err := reduceTree(p, root, send, recv, op); err != nil {
		return err
	}
	if p.Rank() == root {
		if err := op.Finish(recv, p.Size()); err != nil {
			return err
		}
	}
	return bcastTree(p, root, recv)
}

// allreduceDirect sends every vector to every rank, which combines all in the tree's order: one
// step, p-1 messages and (p-1)n bytes per rank. Fastest in simulation: network, 5 ranks, 8 bytes.
func allreduceDirect(p Peers, send, recv mem.Buffer, op call.Op) error {
	r, n, size := p.Rank(), p.Size(), send.Len()
	all := p.Scratch(send, n*size)
	at := func(i int) mem.Buffer { return all.Slice(i*size, (i+1)*size) }
	for d := 1; d < n; d++ {
		p.Irecv(behind(r, d, n), at(behind(r, d, n)))
	}
	for d := 1; d < n; d++ {
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

// allreduceHalving reduces and scatters by halving, then gathers by doubling: 2n(p-1)/p bytes per
// rank in 2 log2 p rounds for a power of two. Rabenseifner: Optimization of Collective Reduction
// Operations (2004). Fastest allreduce in simulation: cluster, 64 ranks, 1 MiB.
func allreduceHalving(p Peers, send, recv mem.Buffer, op call.Op) error {
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

// allreduceCirculant reduces and scatters, then gathers, by the circulant pattern: 2n(p-1)/p bytes
// per rank in 2 ceil(log2 p) rounds for every p. Needs a commuting operator. Fastest allreduce in
// simulation: network, 7 ranks, 1 MiB.
func allreduceCirculant(p Peers, send, recv mem.Buffer, op call.Op) error {
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
