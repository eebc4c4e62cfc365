package coll

import (
	"gompi/internal/core/call"
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// ReduceScatter combines every rank's send, of as many elements as counts sum up to, and leaves the
// r-th block of counts[r] elements in rank r's recv. counts are equal on all ranks. In place: recv
// is the r-th block of send, or begins where send begins; the rest of send may then be overwritten.
func ReduceScatter(p Peers, alg path.Algorithm, send, recv mem.Buffer, counts []int, op call.Op) error {
	return reduceScatter(p, alg, packed(p, counts), send, recv, op)
}

// ReduceScatterBlock is ReduceScatter with blocks of recv's length.
func ReduceScatterBlock(p Peers, alg path.Algorithm, send, recv mem.Buffer, op call.Op) error {
	return reduceScatter(p, alg, evenly(send.Len(), p.Size()), send, recv, op)
}

func reduceScatter(p Peers, alg path.Algorithm, b blocks, send, recv mem.Buffer, op call.Op) error {
	n := p.Size()
	if n == 1 {
		return move(recv, send)
	}
	out := recv
	if mem.Overlap(recv, send) && !mem.Same(recv, b.of(send, p.Rank())) {
		out = p.Scratch(recv, recv.Len())
	}
	if err := reduceScatters[alg](p, b, send, out, op); err != nil {
		return err
	}
	if err := op.Finish(out, n); err != nil {
		return err
	}
	return move(recv, out)
}

// In these algorithms, recv is either the rank's block of send, and the rest of send is scratch, or
// does not overlap send. Of an Avg they compute the sum.
var reduceScatters = [path.NumAlgorithms]func(p Peers, b blocks, send, recv mem.Buffer, op call.Op) error{
	path.Cubes: reduceScatterCubes,
	path.Circulant: func(p Peers, b blocks, send, recv mem.Buffer, op call.Op) error {
		return reduceCirculant(p, b, send, workFor(p, send, recv), recv, op)
	},
}

// workFor returns a buffer like send to work in: send itself if the call is in place.
func workFor(p Peers, send, recv mem.Buffer) mem.Buffer {
	if mem.Overlap(send, recv) {
		return send
	}
	return p.Scratch(send, send.Len())
}

// reduceScatterCubes reduces by halving in the order of order.go: then each rank of the largest
// cube has an interval of the result, and sends each part to its block's rank. floor(log2 p) + 1
// rounds; a ring's bytes and the vector once more. Fastest in simulation: cluster, 64 ranks, 4 KiB.
func reduceScatterCubes(p Peers, b blocks, send, recv mem.Buffer, op call.Op) error {
	work := workFor(p, send, recv)
	if err := reduceCubes(p, send, work, op); err != nil {
		return err
	}
	r, n := p.Rank(), p.Size()
	_, c, _ := cubesOf(0, n)
	first, last := b.bounds(r)
	for j := range c.size() {
		lo, hi := common(first, last, j, b.n, c)
		if lo < hi && j != r {
			p.Irecv(j, recv.Slice(lo-first, hi-first))
		}
	}
	for i := range n {
		first, last := b.bounds(i)
		lo, hi := common(first, last, r, b.n, c)
		switch {
		case lo >= hi:
		case i != r:
			p.Isend(i, work.Slice(lo, hi))
		default:
			if err := move(recv.Slice(lo-first, hi-first), work.Slice(lo, hi)); err != nil {
				return err
			}
		}
	}
	return p.Wait()
}

// common returns the intersection of elements [first, last) of n with the interval that
// reduceCubes leaves at rank r: empty if lo >= hi. c is the largest cube.
func common(first, last, r, n int, c cube) (lo, hi int) {
	if r >= c.size() {
		return 0, 0
	}
	lo, hi = interval(n, r, c.dim)
	return max(lo, first), min(hi, last)
}
