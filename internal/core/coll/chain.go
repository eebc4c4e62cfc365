package coll

import (
	"gompi/internal/core/call"
	"gompi/internal/mem"
)

// Chains of ranks, along which k chunks of a vector travel in k+1 steps: a rank receives a chunk in
// one step and forwards it in the next. A caller may do other work between steps.

// BcastStep receives chunk i, at(i), from the rank before in root's chain, and sends chunk i-1 on.
func BcastStep(p Peers, root, i, k int, at func(int) mem.Buffer) error {
	r, n := p.Rank(), p.Size()
	v := behind(r, root, n) // place in the chain
	if v > 0 && i < k {
		p.Irecv(behind(r, 1, n), at(i))
	}
	if v < n-1 && i > 0 {
		p.Isend(ahead(r, 1, n), at(i-1))
	}
	return p.Wait()
}

// ReduceStep combines chunk i, of which this rank's operand is own(i), with the partial result
// from the rank before in the chain to root. The combination is sum(i), which may be own(i): the
// result at root, else the chunk to send in the next step. The first rank sends its operand.
// Needs a commuting operator.
func ReduceStep(p Peers, root, i, k int, own, sum func(int) mem.Buffer, op call.Op) error {
	r, n := p.Rank(), p.Size()
	v := behind(r, root, n) // place in the chain, from its end
	if v < n-1 && i < k {
		p.IrecvReduce(ahead(r, 1, n), sum(i), own(i), op.Base(), false)
	}
	if v > 0 && i > 0 {
		p.Isend(behind(r, 1, n), sum(i-1))
	}
	return p.Wait()
}
