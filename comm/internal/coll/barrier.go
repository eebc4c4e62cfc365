package coll

import (
	"gompi/comm/internal/path"
	"gompi/internal/mem"
)

// Barrier returns when every rank has called it.
func Barrier(p Peers, alg path.Algorithm) error {
	if p.Size() == 1 {
		return nil
	}
	return barriers[alg](p)
}

var barriers = [path.NumAlgorithms]func(Peers) error{
	path.Dissemination: barrierDissemination,
	path.Tree:          barrierTree,
}

// barrierDissemination has every rank signal the rank 2^k ahead and hear from
// the one 2^k behind, k = 0, 1, ...: after round k it has heard, through others,
// from 2^(k+1) ranks. ceil(log2 p) rounds and messages per rank.
// Hensgen, Finkel, Manber: Two algorithms for barrier synchronization (1988).
// Fastest barrier in simulation: network, 8 ranks.
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

// barrierTree gathers signals at rank 0 and releases everyone: p-1 messages up,
// p-1 down, in 2 ceil(log2 p) rounds. On a host with more ranks than processors
// every message costs a change of process, so that fewer messages win.
// Fastest barrier of 64 ranks in one process on two processors: 149 us (A), by dissemination
// 219.
func barrierTree(p Peers) error {
	r := p.Rank()
	t := tree{size: p.Size()}
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
	return bcastTree(p, 0, mem.Buffer{})
}
