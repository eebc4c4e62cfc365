package coll

import "gompi/internal/mem"

// Allgather puts rank r's send into the r-th block of everybody's recv; all
// have send's length. In place: send is the rank's own block of recv.
func Allgather(p Peers, t *Table, send, recv mem.Buffer) error {
	n := p.Size()
	return allgather(p, t, evenly(send.Len()*n, n), send, recv)
}

// Allgatherv is Allgather with blocks of counts[r] elements at displs[r], or
// packed if displs is nil. counts are equal on all ranks, displs need not be.
func Allgatherv(p Peers, t *Table, send, recv mem.Buffer, counts, displs []int) error {
	if displs == nil || p.Size() == 1 {
		return allgather(p, t, placed(p, counts, displs), send, recv)
	}
	// The ring moves single blocks, wherever they are; other algorithms want
	// them packed. The choice must not depend on displs.
	at, b, n := placed(p, counts, displs), packed(p, counts), p.Size()
	if allgatherFor(p, t, b, send).name == "ring" {
		if err := move(at.of(recv, p.Rank()), send); err != nil {
			return err
		}
		return gatherRing(p, at, recv)
	}
	all := p.Scratch(send, b.n)
	if err := allgather(p, t, b, send, all); err != nil {
		return err
	}
	for i := range n {
		if err := move(at.of(recv, i), b.of(all, i)); err != nil {
			return err
		}
	}
	return nil
}

func allgather(p Peers, t *Table, b blocks, send, recv mem.Buffer) error {
	if err := move(b.of(recv, p.Rank()), send); err != nil {
		return err
	}
	if p.Size() == 1 {
		return nil
	}
	return allgatherFor(p, t, b, send).run(p, b, recv)
}

func allgatherFor(p Peers, t *Table, b blocks, like mem.Buffer) *algorithm[allgatherFunc] {
	bytes := int64(b.n) * int64(like.Type().Size()) / int64(b.p)
	return choose(t, kAllgather, allgathers, p.Size(), bytes, Op{})
}

// An allgatherFunc completes buf on every rank r, where block r is there.
type allgatherFunc func(p Peers, b blocks, buf mem.Buffer) error

var allgathers = []algorithm[allgatherFunc]{
	{method{name: "circulant", doc: "by the circulant pattern: fewest rounds for any number of ranks",
		cost: func(l load) cost { return circulantCost(l, int64(l.ranks)*l.bytes()) }}, gatherCirculant},
	{method{name: "bruck", doc: "the circulant pattern in a rotated copy: fewest messages a round, for short blocks",
		cost: func(l load) cost {
			p, q := l.ranks, depth(l.ranks)
			return cost{q, p * q, int64(p*(p-1)) * l.bytes()}
		}}, gatherBruck},
	{method{name: "rdouble", doc: "recursive doubling: fewest rounds and messages", pow2: true,
		cost: func(l load) cost {
			p, q := l.ranks, depth(l.ranks)
			return cost{q, p * q, int64(p*(p-1)) * l.bytes()}
		}}, gatherDoubling},
	{method{name: "direct", doc: "everyone sends to everyone: one step",
		cost: func(l load) cost {
			m := l.ranks * (l.ranks - 1)
			return cost{1, m, int64(m) * l.bytes()}
		}}, gatherDirect},
	{method{name: "tree", doc: "gather, then bcast, by binomial trees: fewest messages",
		cost: func(l load) cost {
			t, n := tree{size: l.ranks}, l.ranks-1
			up := cost{t.height(), n, int64(t.volume(evenly(l.ranks, l.ranks))) * l.bytes()}
			return up.plus(cost{t.height(), n, int64(n*l.ranks) * l.bytes()})
		}}, gatherAndBcast},
	{method{name: "ring", doc: "around a ring: fewest bytes between hosts",
		cost: func(l load) cost {
			p := l.ranks
			return cost{p - 1, p * (p - 1), int64(p*(p-1)) * l.bytes()}
		}}, gatherRing},
}

var allgatherRules = []rule{
	{alg: "circulant"},
	{ranks: 3, to: 64 << 10, alg: "direct"},
	{ranks: 4, alg: "circulant"},
	{ranks: 4, to: 2 << 10, alg: "bruck"},
	{pow2: true, alg: "rdouble"},
	{crowded: true, ranks: 3, to: 64 << 10, alg: "direct"},
	{crowded: true, ranks: 5, to: 64 << 10, alg: "circulant"},
	{crowded: true, ranks: 5, to: 16 << 10, alg: "tree"},
	{remote: true, ranks: 3, to: 256 << 10, alg: "direct"},
	{remote: true, ranks: 24, to: 256 << 10, alg: "circulant"},
	{spread: true, to: 8 << 10, alg: "circulant"},
	{spread: true, from: 8 << 10, alg: "ring"},
}

// gatherBruck is gatherCirculant in a copy that starts with the rank's own
// block, so that a run of blocks never wraps and every round sends one message:
// ceil(log2 p) of them and n(p-1)/p bytes per rank, and two copies.
// Bruck et al.: Efficient algorithms for all-to-all communications (1997).
// Fastest allgather in simulation: loopback, 33 ranks, 8 bytes.
func gatherBruck(p Peers, b blocks, buf mem.Buffer) error {
	r, n := p.Rank(), p.Size()
	rot := p.Scratch(buf, b.n)
	cut := b.n - b.start(r) // elements from block r to the end
	part := func(i, j int) mem.Buffer {
		return rot.Slice(b.turned(r, i), b.turned(r, j))
	}
	if err := move(part(0, 1), b.of(buf, r)); err != nil {
		return err
	}
	for s := 1; s < n; {
		a := skipBefore(n, s)
		p.Irecv(ahead(r, s, n), part(s, a))
		p.Isend(behind(r, s, n), part(0, a-s))
		if err := p.Wait(); err != nil {
			return err
		}
		s = a
	}
	if err := move(buf.Slice(b.n-cut, b.n), rot.Slice(0, cut)); err != nil {
		return err
	}
	return move(buf.Slice(0, b.n-cut), rot.Slice(cut, b.n))
}

// turned returns where the i-th block from block r on, i <= p, starts in a copy
// that begins with block r.
func (b blocks) turned(r, i int) int {
	switch j := r + i; {
	case i == b.p:
		return b.n
	case j < b.p:
		return b.start(j) - b.start(r)
	default:
		return b.n - b.start(r) + b.start(j-b.p)
	}
}

// gatherDoubling exchanges with the neighbour block of 1, 2, 4, ... ranks:
// log2 p messages and n(p-1)/p bytes per rank. Needs a power of two ranks.
// Fastest allgather in simulation: loopback, 8 ranks, 4 KiB.
func gatherDoubling(p Peers, b blocks, buf mem.Buffer) error {
	r := p.Rank()
	for d := 1; d < p.Size(); d *= 2 {
		mine, theirs := r/d*d, (r/d^1)*d
		p.Isend(r^d, b.span(buf, mine, mine+d))
		p.Irecv(r^d, b.span(buf, theirs, theirs+d))
		if err := p.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// gatherDirect sends every block to every rank: one step of p-1 messages per
// rank.
// Fastest allgather in simulation: loopback, 3 ranks, 8 bytes.
func gatherDirect(p Peers, b blocks, buf mem.Buffer) error {
	r, n := p.Rank(), p.Size()
	for d := 1; d < n; d++ {
		p.Irecv(behind(r, d, n), b.of(buf, behind(r, d, n)))
		p.Isend(ahead(r, d, n), b.of(buf, r))
	}
	return p.Wait()
}

// gatherAndBcast gathers at rank 0 and broadcasts all: 2(p-1) messages.
// Fastest allgather in simulation: crowded, 13 ranks, 8 bytes.
func gatherAndBcast(p Peers, b blocks, buf mem.Buffer) error {
	if err := gatherTree(p, 0, b, b.of(buf, p.Rank()), buf); err != nil {
		return err
	}
	return bcastTree(p, 0, buf)
}
