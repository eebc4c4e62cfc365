package coll

import (
	"gompi/internal/core/call"
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// Scan leaves the combination of the sends of ranks 0 to r in rank r's recv. In
// place: recv is send. Avg divides by the r+1 operands.
func Scan(p Peers, alg path.Algorithm, send, recv mem.Buffer, op call.Op) error {
	if p.Size() == 1 {
		return move(recv, send)
	}
	if err := scans[alg](p, 0, send, recv, op); err != nil {
		return err
	}
	return op.Finish(recv, p.Rank()+1)
}

// Exscan leaves the combination of the sends of ranks 0 to r-1 in rank r's recv. It does not write
// to rank 0's recv. In place: recv is send. Avg divides by the r operands. It is one round of
// passing send on, then Scan from rank 1 on.
func Exscan(p Peers, alg path.Algorithm, send, recv mem.Buffer, op call.Op) error {
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
	if err := scans[alg](p, 1, recv, recv, op); err != nil {
		return err
	}
	return op.Finish(recv, r)
}

// These scan ranks first to p-1 only, and leave Avg's sum.
var scans = [path.NumAlgorithms]func(p Peers, first int, send, recv mem.Buffer, op call.Op) error{
	path.RecursiveDoubling: scanDoubling,
	path.Chain: func(p Peers, first int, send, recv mem.Buffer, op call.Op) error {
		return scanChain(p, first, send, recv, op, segment(send.Len(), send.ElemSize(), p.Size()-first-2))
	},
}

// scanDoubling sends the combination so far 1, 2, 4, ... ranks up: after round k it covers 2^(k+1)
// ranks. ceil(log2 p) rounds of n bytes. Hillis, Steele: Data parallel algorithms (1986). Fastest
// scan in simulation: network, 64 ranks, 8 bytes.
func scanDoubling(p Peers, first int, send, recv mem.Buffer, op call.Op) error {
	r, n := p.Rank()-first, p.Size()-first
	s, err := newPingPong(p, send, recv, depth(r+1))
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

// scanChain passes the combination from rank to rank, seg elements at a time: a rank combines one
// chunk while it sends the one before. p-2+k rounds for k chunks, n bytes per rank. Fastest scan in
// simulation: cluster, 24 ranks, 4 MiB.
func scanChain(p Peers, first int, send, recv mem.Buffer, op call.Op, seg int) error {
	r, last := p.Rank(), p.Size()-1
	if r == first {
		if err := move(recv, send); err != nil {
			return err
		}
	}
	k := chunks(send.Len(), seg)
	for i := range k + 1 {
		if r > first && i < k {
			p.IrecvReduce(r-1, chunk(recv, seg, i), chunk(send, seg, i), op.Base(), true)
		}
		if r < last && i > 0 {
			p.Isend(r+1, chunk(recv, seg, i-1))
		}
		if err := p.Wait(); err != nil {
			return err
		}
	}
	return nil
}
