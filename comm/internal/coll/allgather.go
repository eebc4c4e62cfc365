package coll

import (
	"gompi/comm/internal/path"
	"gompi/internal/mem"
)

// Allgather puts rank r's send into the r-th block of everybody's recv; all
// have send's length. In place: send is the rank's own block of recv.
func Allgather(p Peers, alg path.Algorithm, send, recv mem.Buffer) error {
	n := p.Size()
	return allgather(p, alg, evenly(send.Len()*n, n), send, recv)
}

// Allgatherv is Allgather with blocks of counts[r] elements at displs[r], or
// packed if displs is nil. counts are equal on all ranks, displs need not be.
func Allgatherv(p Peers, alg path.Algorithm, send, recv mem.Buffer, counts, displs []int) error {
	if displs == nil || p.Size() == 1 {
		return allgather(p, alg, placed(p, counts, displs), send, recv)
	}
	// The ring moves single blocks, wherever they are; other algorithms want
	// them packed.
	at, b, n := placed(p, counts, displs), packed(p, counts), p.Size()
	if alg == path.Ring {
		if err := move(at.of(recv, p.Rank()), send); err != nil {
			return err
		}
		return gatherRing(p, at, recv)
	}
	all := p.Scratch(send, b.n)
	if err := allgather(p, alg, b, send, all); err != nil {
		return err
	}
	for i := range n {
		if err := move(at.of(recv, i), b.of(all, i)); err != nil {
			return err
		}
	}
	return nil
}

func allgather(p Peers, alg path.Algorithm, b blocks, send, recv mem.Buffer) error {
	if err := move(b.of(recv, p.Rank()), send); err != nil {
		return err
	}
	if p.Size() == 1 {
		return nil
	}
	return allgathers[alg](p, b, recv)
}

// An allgatherFunc completes buf on every rank r, where block r is there.
type allgatherFunc func(p Peers, b blocks, buf mem.Buffer) error

var allgathers = [path.NumAlgorithms]allgatherFunc{
	path.Circulant:         gatherCirculant,
	path.Bruck:             gatherBruck,
	path.RecursiveDoubling: gatherDoubling,
	path.Direct:            gatherDirect,
	path.Tree:              gatherAndBcast,
	path.Ring:              gatherRing,
}

// gatherBruck is gatherCirculant in a copy that starts with the rank's own
// block, so that a run of blocks never wraps and every round sends one message:
// ceil(log2 p) of them and n(p-1)/p bytes per rank, and two copies.
// Bruck et al.: Efficient algorithms for all-to-all communications (1997).
// Fastest allgather in simulation: loopback, 33 ranks, 8 bytes.
func gatherBruck(p Peers, b blocks, buf mem.Buffer) error {
	r, n := p.Rank(), p.Size()
	rot := p.Scratch(buf, b.n)
	cut := b.n - b.start(r) // elements from block r to the end
	part := func(i, j int) mem.Buffer {
		return rot.Slice(b.turned(r, i), b.turned(r, j))
	}
	if err := move(part(0, 1), b.of(buf, r)); err != nil {
		return err
	}
	for s := 1; s < n; {
		a := skipBefore(n, s)
		p.Irecv(ahead(r, s, n), part(s, a))
		p.Isend(behind(r, s, n), part(0, a-s))
		if err := p.Wait(); err != nil {
			return err
		}
		s = a
	}
	if err := move(buf.Slice(b.n-cut, b.n), rot.Slice(0, cut)); err != nil {
		return err
	}
	return move(buf.Slice(0, b.n-cut), rot.Slice(cut, b.n))
}

// turned returns where the i-th block from block r on, i <= p, starts in a copy
// that begins with block r.
func (b blocks) turned(r, i int) int {
	switch j := r + i; {
	case i == b.p:
		return b.n
	case j < b.p:
		return b.start(j) - b.start(r)
	default:
		return b.n - b.start(r) + b.start(j-b.p)
	}
}

// gatherDoubling exchanges with the neighbour block of 1, 2, 4, ... ranks:
// log2 p messages and n(p-1)/p bytes per rank. Needs a power of two ranks.
// Fastest allgather in simulation: loopback, 8 ranks, 4 KiB.
func gatherDoubling(p Peers, b blocks, buf mem.Buffer) error {
	r := p.Rank()
	for d := 1; d < p.Size(); d *= 2 {
		mine, theirs := r/d*d, (r/d^1)*d
		p.Isend(r^d, b.span(buf, mine, mine+d))
		p.Irecv(r^d, b.span(buf, theirs, theirs+d))
		if err := p.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// gatherDirect sends every block to every rank: one step of p-1 messages per
// rank.
// Fastest allgather in simulation: loopback, 3 ranks, 8 bytes.
func gatherDirect(p Peers, b blocks, buf mem.Buffer) error {
	r, n := p.Rank(), p.Size()
	for d := 1; d < n; d++ {
		p.Irecv(behind(r, d, n), b.of(buf, behind(r, d, n)))
		p.Isend(ahead(r, d, n), b.of(buf, r))
	}
	return p.Wait()
}

// gatherAndBcast gathers at rank 0 and broadcasts all: 2(p-1) messages.
// Fastest allgather in simulation: crowded, 13 ranks, 8 bytes.
func gatherAndBcast(p Peers, b blocks, buf mem.Buffer) error {
	if err := gatherTree(p, 0, b, b.of(buf, p.Rank()), buf); err != nil {
		return err
	}
	return bcastTree(p, 0, buf)
}
