package coll

import "gompi/internal/mem"

// Bcast copies root's buf to every rank's.
func Bcast(p Peers, t *Table, root int, buf mem.Buffer) error {
	if p.Size() == 1 {
		return nil
	}
	return choose(t, kBcast, bcasts, p.Size(), int64(buf.Size()), Op{}).run(p, root, buf)
}

var bcasts = []algorithm[func(p Peers, root int, buf mem.Buffer) error]{
	{method{name: "binomial", doc: "down a binomial tree: fewest rounds",
		cost: func(l load) cost {
			n := l.ranks - 1
			return cost{tree{l.ranks, l.root}.height(), n, int64(n) * l.bytes()}
		}}, bcastTree},
	{method{name: "scatter", doc: "scatter, then allgather: every link carries the vector twice at most",
		cost: func(l load) cost {
			t := tree{l.ranks, l.root}
			n := int64(l.size) * int64(t.volume(evenly(l.elems, l.ranks)))
			return cost{t.height(), l.ranks - 1, n}.plus(circulantCost(l, l.bytes()))
		}}, bcastScatter},
	{method{name: "chain", doc: "piece by piece along a chain: every rank sends the vector once",
		cost: func(l load) cost {
			n := l.ranks - 1
			k := pieces(l.elems, segment(l.elems, l.size, n-1))
			return cost{n - 1 + k, n * k, int64(n) * l.bytes()}
		}}, func(p Peers, root int, buf mem.Buffer) error {
		return bcastChain(p, root, buf, segment(buf.Len(), buf.Type().Size(), p.Size()-2))
	}},
}

var bcastRules = []rule{
	{alg: "binomial"},
	{ranks: 5, from: 64 << 10, alg: "scatter"},
	{ranks: 3, from: 4 << 20, alg: "chain"},
	{ranks: 24, from: 4 << 20, alg: "scatter"},
	{ranks: 24, from: 32 << 20, alg: "chain"},
	{crowded: true, to: 4 << 20, alg: "binomial"},
	{remote: true, ranks: 3, from: 1 << 20, to: 4 << 20, alg: "scatter"},
	{spread: true, alg: "binomial"},
	{spread: true, ranks: 64, from: 64 << 10, to: 256 << 10, alg: "scatter"},
	{spread: true, from: 1 << 20, alg: "chain"},
}

// bcastTree sends buf down the binomial tree, to the largest subtree first.
// At most ceil(log2 p) rounds; p-1 messages in all, the root sends ceil(log2 p).
// Fastest bcast in simulation: loopback, 8 ranks, 8 bytes.
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

// bcastScatter scatters buf in p blocks down the binomial tree and gathers them
// everywhere: about 2n(p-1)/p bytes through every rank whatever p is, in
// 2 ceil(log2 p) rounds. For vectors too short for the chain's many hops.
// van de Geijn et al.: Collective communication on high-performance architectures.
// Fastest bcast in simulation: loopback, 33 ranks, 256 KiB.
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

// bcastChain passes buf from root to root+1 and so on, seg elements at a time:
// a rank sends one piece while it receives the next. p-2+k rounds for k pieces,
// n bytes per rank, which is as few as can be.
// Fastest bcast in simulation: network, 7 ranks, 64 MiB.
func bcastChain(p Peers, root int, buf mem.Buffer, seg int) error {
	r, n := p.Rank(), p.Size()
	v := behind(r, root, n) // place in the chain
	prev, next := behind(r, 1, n), ahead(r, 1, n)
	k := pieces(buf.Len(), seg)
	for i := range k + 1 {
		if v > 0 && i < k {
			p.Irecv(prev, piece(buf, seg, i))
		}
		if v < n-1 && i > 0 {
			p.Isend(next, piece(buf, seg, i-1))
		}
		if err := p.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// pieces returns how many pieces of seg elements make n, at least one: an empty
// message is sent like others.
func pieces(n, seg int) int { return max(1, (n+seg-1)/seg) }

// piece returns the i-th seg elements of b.
func piece(b mem.Buffer, seg, i int) mem.Buffer {
	return b.Slice(min(i*seg, b.Len()), min((i+1)*seg, b.Len()))
}
