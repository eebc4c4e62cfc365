package coll

import (
	"gompi/comm/internal/call"
	"gompi/internal/mem"
)

// reduceRing leaves the combination of all ranks' block r in place(r) on every
// rank r. Partial results go around the ring, each rank adding its own block:
// p-1 rounds, n(p-1)/p bytes per rank. The partial result of block i is made in
// place(i) and sent from there in the next round.
func reduceRing(p Peers, b blocks, send mem.Buffer, place func(i int) mem.Buffer, op call.Op) error {
	r, n := p.Rank(), p.Size()
	next, prev := ahead(r, 1, n), behind(r, 1, n)
	out := b.of(send, prev)
	for s := 2; s <= n; s++ {
		i := behind(r, s, n)
		in := place(i)
		p.IrecvReduce(prev, in, b.of(send, i), op.Base(), false)
		p.Isend(next, out)
		if err := p.Wait(); err != nil {
			return err
		}
		out = in
	}
	return nil
}

// gatherRing completes buf on every rank r, where block r is there: p-1
// rounds, n(p-1)/p bytes per rank. Blocks need not be packed.
// Fastest allgather in simulation: cluster, 64 ranks, 256 KiB.
func gatherRing(p Peers, b blocks, buf mem.Buffer) error {
	r, n := p.Rank(), p.Size()
	next, prev := ahead(r, 1, n), behind(r, 1, n)
	for s := range n - 1 {
		p.Irecv(prev, b.of(buf, behind(r, s+1, n)))
		p.Isend(next, b.of(buf, behind(r, s, n)))
		if err := p.Wait(); err != nil {
			return err
		}
	}
	return nil
}
