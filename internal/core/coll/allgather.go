package coll

import (
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// Allgather puts rank r's send into the r-th block of the recv of all; all
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
	// The ring moves single blocks, wherever they are. Other algorithms need packed blocks.
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
	path.Circulant: gatherCirculant,
	path.Direct:    gatherDirect,
	path.Ring:      gatherRing,
}

// gatherDirect sends every block to every rank: one step of p-1 messages per rank. Fastest
// allgather in simulation: network, 5 ranks, 4 KiB.
func gatherDirect(p Peers, b blocks, buf mem.Buffer) error {
	r, n := p.Rank(), p.Size()
	for d := 1; d < n; d++ {
		p.Irecv(behind(r, d, n), b.of(buf, behind(r, d, n)))
	}
	for d := 1; d < n; d++ {
		p.Isend(ahead(r, d, n), b.of(buf, r))
	}
	return p.Wait()
}
