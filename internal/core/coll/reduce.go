package coll

import (
	"gompi/internal/core/call"
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// Reduce combines every rank's send into root's recv. recv matters only at root. In place: at root,
// recv is send.
func Reduce(p Peers, alg path.Algorithm, root int, send, recv mem.Buffer, op call.Op) error {
	if p.Size() == 1 {
		return move(recv, send)
	}
	if p.Rank() != root {
		recv = send.Slice(0, 0)
	}
	if err := reduces[alg](p, root, send, recv, op); err != nil {
		return err
	}
	return op.Finish(recv, p.Size())
}

// The algorithms leave Avg's sum at root.
var reduces = [path.NumAlgorithms]func(p Peers, root int, send, recv mem.Buffer, op call.Op) error{
	path.Binomial: reduceTree,
	path.Halving:  reduceHalving,
	path.Chain: func(p Peers, root int, send, recv mem.Buffer, op call.Op) error {
		return reduceChain(p, root, send, recv, op, segment(send.Len(), send.ElemSize(), p.Size()-2))
	},
}

// reduceTree sends partial results up the binomial tree, combining in its order. At most ceil(log2
// p) rounds, p-1 messages in all, n bytes each. Fastest in simulation: network, 7 ranks, 8 bytes.
func reduceTree(p Peers, root int, send, recv mem.Buffer, op call.Op) error {
	r, t := p.Rank(), tree{p.Size(), root}
	own, acc := send, recv
	for k := range t.top(r) {
		c, lo, hi := t.child(r, k)
		if lo >= hi {
			continue
		}
		if r != root && acc.Len() < send.Len() {
			acc = p.Scratch(send, send.Len())
		}
		p.IrecvReduce(c, acc, own, op.Base(), lo < r)
		if err := p.Wait(); err != nil {
			return err
		}
		own = acc
	}
	if r != root {
		p.Isend(t.parent(r), own)
	}
	return p.Wait()
}

// reduceHalving divides the reduction among the ranks of the largest cube and collects the chunks:
// 2n bytes per rank, not a tree's n log p, in some 2 log2 p rounds. Rabenseifner: Optimization of
// Collective Reduction Operations (2004). Fastest in simulation: cluster, 64 ranks, 1 MiB.
func reduceHalving(p Peers, root int, send, recv mem.Buffer, op call.Op) error {
	work := recv
	if p.Rank() != root {
		work = p.Scratch(send, send.Len())
	}
	if err := reduceCubes(p, send, work, op); err != nil {
		return err
	}
	return collectCubes(p, root, work, recv)
}

// reduceChain passes partial results from root-1 down to root, seg elements at a time: a rank
// combines one chunk while it sends the one before. p-2+k rounds for k chunks, n bytes per rank,
// the minimum. Needs a commuting operator. Fastest in simulation: network, 7 ranks, 64 MiB.
func reduceChain(p Peers, root int, send, recv mem.Buffer, op call.Op, seg int) error {
	r, n := p.Rank(), p.Size()
	v := behind(r, root, n) // place in the chain
	k := chunks(send.Len(), seg)
	var pair [2]mem.Buffer // partial results on their way through
	if v > 0 && v < n-1 {
		s := p.Scratch(send, 2*min(seg, send.Len()))
		pair[0], pair[1] = s.Slice(0, s.Len()/2), s.Slice(s.Len()/2, s.Len())
	}
	out := func(i int) mem.Buffer {
		switch {
		case v == 0:
			return chunk(recv, seg, i)
		case v == n-1:
			return chunk(send, seg, i)
		}
		return pair[i%2].Slice(0, chunk(send, seg, i).Len())
	}
	own := func(i int) mem.Buffer { return chunk(send, seg, i) }
	for i := range k + 1 {
		if err := ReduceStep(p, root, i, k, own, out, op); err != nil {
			return err
		}
	}
	return nil
}
