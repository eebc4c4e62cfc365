package coll

import (
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// Barrier returns when every rank has called it.
func Barrier(p Peers, alg path.Algorithm) error {
	if p.Size() == 1 {
		return nil
	}
	return barriers[alg](p)
}

var barriers = [path.NumAlgorithms]func(p Peers) error{
	path.Dissemination: barrierDissemination,
	path.Binomial:      barrierTree,
}

// barrierDissemination signals the rank 2^k ahead and waits for the one 2^k behind, k = 0, 1, ...:
// after round k a rank has been signalled, through others, by 2^(k+1) ranks. ceil(log2 p) rounds
// and messages per rank. Hensgen, Finkel, Manber: Two algorithms for barrier synchronization
// (1988). Fastest barrier in simulation: network, 8 ranks, 0 bytes.
func barrierDissemination(p Peers) error {
	r, n := p.Rank(), p.Size()
	for d := 1; d < n; d *= 2 {
		p.Irecv(behind(r, d, n), mem.Buffer{})
		p.Isend(ahead(r, d, n), mem.Buffer{})
		if err := p.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// barrierTree signals up the binomial tree of rank 0, once all below have, and down again: p-1
// messages each way in all, so that most ranks wait once, and at most 2 ceil(log2 p) rounds.
// Fastest barrier in simulation: oversubscribed, 512 ranks, 0 bytes.
func barrierTree(p Peers) error {
	r, t := p.Rank(), tree{p.Size(), 0}
	for k := range t.top(r) {
		if c, lo, hi := t.child(r, k); lo < hi {
			p.Irecv(c, mem.Buffer{})
		}
	}
	if err := p.Wait(); err != nil {
		return err
	}
	if r != t.root {
		p.Isend(t.parent(r), mem.Buffer{})
	}
	return bcastTree(p, t.root, mem.Buffer{})
}
