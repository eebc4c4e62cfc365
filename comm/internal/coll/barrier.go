package coll

import "gompi/internal/mem"

// Barrier returns when every rank has called it: by dissemination. Every rank signals the rank 2^k
// ahead and waits for the one 2^k behind, k = 0, 1, ...: after round k it has been signalled,
// through others, by 2^(k+1) ranks. ceil(log2 p) rounds and messages per rank. Hensgen, Finkel,
// Manber: Two algorithms for barrier synchronization (1988).
func Barrier(p Peers) error {
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
