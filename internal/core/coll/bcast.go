package coll

import (
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// Bcast copies root's buf to every rank's.
func Bcast(p Peers, alg path.Algorithm, root int, buf mem.Buffer) error {
	if p.Size() == 1 {
		return nil
	}
	return bcasts[alg](p, root, buf)
}

var bcasts = [path.NumAlgorithms]func(p Peers, root int, buf mem.Buffer) error{
	path.Binomial:         bcastTree,
	path.ScatterAllgather: bcastScatter,
	path.Chain: func(p Peers, root int, buf mem.Buffer) error {
		return bcastChain(p, root, buf, segment(buf.Len(), buf.ElemSize(), p.Size()-2))
	},
}

// bcastTree sends buf down the binomial tree, the largest subtree first: at most ceil(log2 p)
// rounds, p-1 messages, ceil(log2 p) by the root. Fastest in simulation: network, 7 ranks, 8 bytes.
func bcastTree(p Peers, root int, buf mem.Buffer) error {
	r, t := p.Rank(), tree{p.Size(), root}
	if r != root {
		p.Irecv(t.parent(r), buf)
		if err := p.Wait(); err != nil {
			return err
		}
	}
	for k := t.top(r) - 1; k >= 0; k-- {
		if c, lo, hi := t.child(r, k); lo < hi {
			p.Isend(c, buf)
		}
	}
	return p.Wait()
}

// bcastScatter scatters buf in p blocks down the binomial tree and gathers them everywhere: about
// 2n(p-1)/p bytes through every rank whatever p is, in 2 ceil(log2 p) rounds. For vectors too short
// for the chain's many hops. van de Geijn et al.: Collective communication on high-performance
// architectures. Fastest bcast in simulation: network, 64 ranks, 1 MiB.
func bcastScatter(p Peers, root int, buf mem.Buffer) error {
	b := evenly(buf.Len(), p.Size())
	r, t := p.Rank(), tree{p.Size(), root}
	if r != root {
		lo, hi := t.span(r)
		p.Irecv(t.parent(r), b.span(buf, lo, hi))
		if err := p.Wait(); err != nil {
			return err
		}
	}
	for k := t.top(r) - 1; k >= 0; k-- {
		if c, lo, hi := t.child(r, k); lo < hi {
			p.Isend(c, b.span(buf, lo, hi))
		}
	}
	if err := p.Wait(); err != nil {
		return err
	}
	return gatherCirculant(p, b, buf)
}

// bcastChain passes buf from root to root+1 and so on, seg elements at a time: a rank sends one
// chunk while it receives the next. p-2+k rounds for k chunks, n bytes per rank, which is the
// minimum. Fastest bcast in simulation: network, 7 ranks, 64 MiB.
func bcastChain(p Peers, root int, buf mem.Buffer, seg int) error {
	k := chunks(buf.Len(), seg)
	for i := range k + 1 {
		if err := BcastStep(p, root, i, k, func(i int) mem.Buffer { return chunk(buf, seg, i) }); err != nil {
			return err
		}
	}
	return nil
}

// chunks returns the number of chunks of seg elements in n, at least 1: an empty message is sent
// like others.
func chunks(n, seg int) int { return max(1, (n+seg-1)/seg) }

// chunk returns the i-th seg elements of b.
func chunk(b mem.Buffer, seg, i int) mem.Buffer {
	return b.Slice(min(i*seg, b.Len()), min((i+1)*seg, b.Len()))
}
