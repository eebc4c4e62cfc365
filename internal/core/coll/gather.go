package coll

import (
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// Gather puts rank r's send into the r-th block of root's recv; all have send's length. recv
// matters only at root. In place: at root, send is root's block of recv.
func Gather(p Peers, alg path.Algorithm, root int, send, recv mem.Buffer) error {
	b := evenly(send.Len()*p.Size(), p.Size())
	if p.Size() == 1 {
		return move(recv, send)
	}
	return gathers[alg](p, root, b, send, recv)
}

// Gatherv is Gather with blocks of counts[r] elements at displs[r], or packed
// if displs is nil; only root knows them. Rank r's send has counts[r] elements.
func Gatherv(p Peers, root int, send, recv mem.Buffer, counts, displs []int) error {
	if p.Rank() != root {
		return gatherLinear(p, root, blocks{}, send, recv)
	}
	return gatherLinear(p, root, placed(p, counts, displs), send, recv)
}

var gathers = [path.NumAlgorithms]func(p Peers, root int, b blocks, send, recv mem.Buffer) error{
	path.Binomial: gatherTree,
	path.Linear:   gatherLinear,
}

// gatherTree is scatterTree backwards. Root receives every subtree's blocks in their place. Fastest
// gather in simulation: cluster, 64 ranks, 8 bytes.
func gatherTree(p Peers, root int, b blocks, send, recv mem.Buffer) error {
	r, t := p.Rank(), tree{p.Size(), root}
	lo, hi := t.span(r)
	first, out := 0, recv
	if r != root {
		if hi-lo == 1 {
			p.Isend(t.parent(r), send)
			return p.Wait()
		}
		first = b.start(lo)
		out = p.Scratch(send, b.start(hi-1)+b.count(hi-1)-first)
	}
	part := func(lo, hi int) mem.Buffer {
		return out.Slice(b.start(lo)-first, b.start(hi-1)+b.count(hi-1)-first)
	}
	for k := range t.top(r) {
		if c, lo, hi := t.child(r, k); lo < hi {
			p.Irecv(c, part(lo, hi))
		}
	}
	if err := move(part(r, r+1), send); err != nil {
		return err
	}
	if err := p.Wait(); err != nil {
		return err
	}
	if r != root {
		p.Isend(t.parent(r), out)
	}
	return p.Wait()
}

// gatherLinear has root receive every block, a batch at a time: p-1 messages, none through another
// rank. Long messages wait until root is ready for them, so that senders don't collide. b is used
// only at root. Fastest gather in simulation: cluster, 16 ranks, 16 KiB.
func gatherLinear(p Peers, root int, b blocks, send, recv mem.Buffer) error {
	r, n := p.Rank(), p.Size()
	if r != root {
		p.Isend(root, send)
		return p.Wait()
	}
	if err := move(b.of(recv, r), send); err != nil {
		return err
	}
	for d := 1; d < n; d++ {
		from := behind(r, d, n)
		p.Irecv(from, b.of(recv, from))
		if d%batch == 0 || d == n-1 {
			if err := p.Wait(); err != nil {
				return err
			}
		}
	}
	return nil
}
