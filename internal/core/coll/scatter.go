package coll

import (
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// Scatter sends the r-th block of root's send to rank r's recv. All blocks have the length of recv.
// send matters only at root. In place: at root, recv is root's block of send.
func Scatter(p Peers, alg path.Algorithm, root int, send, recv mem.Buffer) error {
	b := evenly(recv.Len()*p.Size(), p.Size())
	if p.Size() == 1 {
		return move(recv, send)
	}
	return scatters[alg](p, root, b, send, recv)
}

// Scatterv is Scatter with blocks of counts[r] elements at displs[r], or packed
// if displs is nil; only root knows them. Rank r's recv has counts[r] elements.
func Scatterv(p Peers, root int, send, recv mem.Buffer, counts, displs []int) error {
	if p.Rank() != root {
		return scatterLinear(p, root, blocks{}, send, recv)
	}
	return scatterLinear(p, root, placed(p, counts, displs), send, recv)
}

var scatters = [path.NumAlgorithms]func(p Peers, root int, b blocks, send, recv mem.Buffer) error{
	path.Binomial: scatterTree,
	path.Linear:   scatterLinear,
}

// scatterTree sends every subtree of the binomial tree its blocks, which are neighbours in send: at
// most ceil(log2 p) rounds; the root sends ceil(log2 p) messages and every block but its own once.
// Fastest scatter in simulation: cluster, 64 ranks, 8 bytes.
func scatterTree(p Peers, root int, b blocks, send, recv mem.Buffer) error {
	r, t := p.Rank(), tree{p.Size(), root}
	first := 0 // where this rank's span starts in the buffer it sends from
	if r != root {
		lo, hi := t.span(r)
		if hi-lo == 1 {
			p.Irecv(t.parent(r), recv)
			return p.Wait()
		}
		first = b.start(lo)
		send = p.Scratch(recv, b.start(hi-1)+b.count(hi-1)-first)
		p.Irecv(t.parent(r), send)
		if err := p.Wait(); err != nil {
			return err
		}
	}
	part := func(lo, hi int) mem.Buffer {
		return send.Slice(b.start(lo)-first, b.start(hi-1)+b.count(hi-1)-first)
	}
	for k := t.top(r) - 1; k >= 0; k-- {
		if c, lo, hi := t.child(r, k); lo < hi {
			p.Isend(c, part(lo, hi))
		}
	}
	if err := move(recv, part(r, r+1)); err != nil {
		return err
	}
	return p.Wait()
}

// scatterLinear sends every block from root, a batch at a time: p-1 messages, none through another
// rank. b is used only at root. Fastest scatter in simulation: network, 8 ranks, 4 KiB.
func scatterLinear(p Peers, root int, b blocks, send, recv mem.Buffer) error {
	r, n := p.Rank(), p.Size()
	if r != root {
		p.Irecv(root, recv)
		return p.Wait()
	}
	if err := move(recv, b.of(send, r)); err != nil {
		return err
	}
	for d := 1; d < n; d++ {
		to := ahead(r, d, n)
		p.Isend(to, b.of(send, to))
		if d%batch == 0 || d == n-1 {
			if err := p.Wait(); err != nil {
				return err
			}
		}
	}
	return nil
}

// batch is the number of messages that a rank has under way with different peers: with more, many
// senders collide at a receiver; with fewer, the wire is idle at times.
const batch = 16
