package coll

import "gompi/internal/mem"

// Scan leaves the combination of the sends of ranks 0 to r in rank r's recv. In
// place: recv is send. Avg divides by the r+1 operands.
func Scan(p Peers, t *Table, send, recv mem.Buffer, op Op) error {
	if p.Size() == 1 {
		return move(recv, send)
	}
	a := choose(t, kScan, scans, p.Size(), int64(send.Size()), op)
	if err := a.run(p, 0, send, recv, op); err != nil {
		return err
	}
	return op.Finish(recv, p.Rank()+1)
}

// Exscan leaves the combination of the sends of ranks 0 to r-1 in rank r's
// recv; rank 0's is not touched. In place: recv is send. Avg divides by the r
// operands. It is one round of passing send on, then Scan from rank 1 on.
func Exscan(p Peers, t *Table, send, recv mem.Buffer, op Op) error {
	r, n := p.Rank(), p.Size()
	if n == 1 {
		return nil
	}
	out := send
	if mem.Same(send, recv) && r > 0 && r < n-1 {
		out = p.Scratch(send, send.Len())
		if err := move(out, send); err != nil {
			return err
		}
	}
	if r < n-1 {
		p.Isend(r+1, out)
	}
	if r > 0 {
		p.Irecv(r-1, recv)
	}
	if err := p.Wait(); err != nil || r == 0 || n == 2 {
		return err
	}
	a := choose(t, kScan, scans, n, int64(send.Size()), op)
	if err := a.run(p, 1, recv, recv, op); err != nil {
		return err
	}
	return op.Finish(recv, r)
}

// These scan ranks first to p-1 only, and leave Avg's sum.
var scans = []algorithm[func(p Peers, first int, send, recv mem.Buffer, op Op) error]{
	{method{name: "rdouble", doc: "recursive doubling: fewest rounds", ordered: true,
		cost: func(l load) cost {
			m := 0
			for d := 1; d < l.ranks; d *= 2 {
				m += l.ranks - d
			}
			return cost{depth(l.ranks), m, int64(m) * l.bytes()}
		}}, scanDoubling},
	{method{name: "chain", doc: "piece by piece along a chain: fewest messages, every rank sends the vector once",
		cost: func(l load) cost {
			n := l.ranks - 1
			k := pieces(l.elems, segment(l.elems, l.size, n-1))
			return cost{n - 1 + k, n * k, int64(n) * l.bytes()}
		}}, func(p Peers, first int, send, recv mem.Buffer, op Op) error {
		return scanChain(p, first, send, recv, op, segment(send.Len(), send.Type().Size(), p.Size()-first-2))
	}},
}

var scanRules = []rule{
	{alg: "rdouble"},
	{ranks: 3, from: 512 << 10, alg: "chain"},
	{crowded: true, ranks: 4, from: 64 << 10, alg: "chain"},
	{crowded: true, ranks: 9, alg: "chain"},
	{spread: true, from: 128 << 10, alg: "chain"},
}

// scanDoubling sends the combination so far 1, 2, 4, ... ranks up: after round
// k it covers 2^(k+1) ranks. ceil(log2 p) rounds of n bytes.
// Hillis, Steele: Data parallel algorithms (1986).
// Fastest scan in simulation: loopback, 16 ranks, 8 bytes.
func scanDoubling(p Peers, first int, send, recv mem.Buffer, op Op) error {
	r, n := p.Rank()-first, p.Size()-first
	s, err := newSwing(p, send, recv, depth(r+1))
	if err != nil {
		return err
	}
	for d := 1; d < n; d *= 2 {
		own := s.now
		if r+d < n {
			p.Isend(first+r+d, own)
		}
		if r >= d {
			p.IrecvReduce(first+r-d, s.next(), own, op.Base(), true)
		}
		if err := p.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// scanChain passes the combination from rank to rank, seg elements at a time: a
// rank combines one piece while it sends the one before. p-2+k rounds for k
// pieces, n bytes per rank.
// Fastest scan in simulation: loopback, 8 ranks, 4 MiB.
func scanChain(p Peers, first int, send, recv mem.Buffer, op Op, seg int) error {
	r, last := p.Rank(), p.Size()-1
	if r == first {
		if err := move(recv, send); err != nil {
			return err
		}
	}
	k := pieces(send.Len(), seg)
	for i := range k + 1 {
		if r > first && i < k {
			p.IrecvReduce(r-1, piece(recv, seg, i), piece(send, seg, i), op.Base(), true)
		}
		if r < last && i > 0 {
			p.Isend(r+1, piece(recv, seg, i-1))
		}
		if err := p.Wait(); err != nil {
			return err
		}
	}
	return nil
}
