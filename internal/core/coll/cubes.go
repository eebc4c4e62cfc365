package coll

import (
	"gompi/internal/core/call"
	"gompi/internal/mem"
)

// Binary blocks (R. Rabenseifner, J. L. Träff: More Efficient Reduction Algorithms for
// Non-Power-of-Two Number of Processors). The binary digits of p divide the ranks into cubes,
// powers of two in size, the largest first. Within a cube of 2^d ranks the vector is reduced and
// scattered by halving: with the neighbour at distance 1 a rank exchanges halves, at distance 2
// quarters, and so on. Then every cube but the largest sends its result to the next larger cube:
// each rank there needs a part of the interval of one rank of the smaller cube. This is the
// combination tree of order.go for every p, with as few bytes as a ring. Near ranks exchange most,
// so little data leaves a host with a power of two of consecutive ranks. Ranks of small cubes idle
// at first, and then have much to send at once. So the circulant pattern is better where order does
// not matter and p is no power of two.

// A cube is an aligned run of 2^dim ranks.
type cube struct{ first, dim int }

func (c cube) size() int { return 1 << c.dim }

// none is the cube beyond the largest and the smallest.
var none = cube{dim: -1}

// cubesOf returns the cube of rank r of p and its neighbours in size.
func cubesOf(r, p int) (larger, own, smaller cube) {
	larger, own = none, none
	for k := depth(p); k >= 0; k-- {
		if p>>k&1 == 0 {
			continue
		}
		c := cube{p >> (k + 1) << (k + 1), k}
		if r < c.first {
			return larger, own, c
		}
		larger, own = own, c
	}
	return larger, own, none
}

// interval returns the elements [lo, hi) of n that the i-th rank of a cube owns after the first k
// halvings: the bits of i tell the halves that it kept.
func interval(n, i, k int) (lo, hi int) {
	hi = n
	for j := range k {
		if mid := lo + (hi-lo)/2; i>>j&1 == 0 {
			hi = mid
		} else {
			lo = mid
		}
	}
	return lo, hi
}

// reduceCubes leaves the combination of all ranks' vectors in work, divided among the ranks of the
// largest cube: interval(n, r, dim) on rank r. send holds this rank's vector; it may be work, and
// else is not written.
func reduceCubes(p Peers, send, work mem.Buffer, op call.Op) error {
	r, n := p.Rank(), send.Len()
	larger, c, smaller := cubesOf(r, p.Size())
	i, own := r-c.first, send
	for j := range c.dim {
		peer := r ^ 1<<j
		lo, hi := interval(n, i, j+1)
		give, end := interval(n, i^1<<j, j+1)
		p.IrecvReduce(peer, work.Slice(lo, hi), own.Slice(lo, hi), op.Base(), peer < r)
		p.Isend(peer, own.Slice(give, end))
		if err := p.Wait(); err != nil {
			return err
		}
		own = work
	}
	if smaller != none {
		lo, hi := interval(n, i, c.dim)
		from := smaller.first + i%smaller.size()
		p.IrecvReduce(from, work.Slice(lo, hi), own.Slice(lo, hi), op.Base(), false)
		if err := p.Wait(); err != nil {
			return err
		}
		own = work
	}
	if larger != none {
		for j := i; j < larger.size(); j += c.size() {
			lo, hi := interval(n, j, larger.dim)
			p.Isend(larger.first+j, own.Slice(lo, hi))
		}
	}
	return p.Wait()
}

// gatherCubes, reduceCubes backwards, completes buf everywhere from the largest cube's intervals.
func gatherCubes(p Peers, buf mem.Buffer) error {
	r, n := p.Rank(), buf.Len()
	larger, c, smaller := cubesOf(r, p.Size())
	i := r - c.first
	if larger != none {
		for j := i; j < larger.size(); j += c.size() {
			lo, hi := interval(n, j, larger.dim)
			p.Irecv(larger.first+j, buf.Slice(lo, hi))
		}
		if err := p.Wait(); err != nil {
			return err
		}
	}
	if smaller != none {
		lo, hi := interval(n, i, c.dim)
		p.Isend(smaller.first+i%smaller.size(), buf.Slice(lo, hi))
	}
	for j := c.dim - 1; j >= 0; j-- {
		lo, hi := interval(n, i, j+1)
		take, end := interval(n, i^1<<j, j+1)
		p.Irecv(r^1<<j, buf.Slice(take, end))
		p.Isend(r^1<<j, buf.Slice(lo, hi))
		if err := p.Wait(); err != nil {
			return err
		}
	}
	return p.Wait()
}

// collectCubes is gatherCubes for one rank: it completes recv at root, from
// the intervals in work of the largest cube's ranks. At root, work is recv.
func collectCubes(p Peers, root int, work, recv mem.Buffer) error {
	r := p.Rank()
	_, c, _ := cubesOf(0, p.Size())
	goal := root // in the largest cube
	if root >= c.size() {
		goal = 0
	}
	if r < c.size() {
		if err := collectCube(p, c, goal, work); err != nil {
			return err
		}
	}
	if goal == root {
		return nil
	}
	if r == goal {
		p.Isend(root, work)
	}
	if r == root {
		p.Irecv(goal, recv)
	}
	return p.Wait()
}

// collectCube completes work at rank goal of the largest cube c: in each round half of the ranks
// that still have data send it to the other half and are done.
func collectCube(p Peers, c cube, goal int, work mem.Buffer) error {
	r, n := p.Rank(), work.Len()
	for j := c.dim - 1; j >= 0; j-- {
		if lo, hi := interval(n, r, j+1); (r^goal)>>j&1 == 1 {
			p.Isend(r^1<<j, work.Slice(lo, hi))
			return p.Wait()
		}
		lo, hi := interval(n, r^1<<j, j+1)
		p.Irecv(r^1<<j, work.Slice(lo, hi))
		if err := p.Wait(); err != nil {
			return err
		}
	}
	return nil
}
