package coll

import (
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// Alltoall sends the i-th block of rank r's send to the r-th block of rank i's recv; all blocks
// have equal lengths. In place: recv is send.
func Alltoall(p Peers, alg path.Algorithm, send, recv mem.Buffer) error {
	n := p.Size()
	if n == 1 {
		return move(recv, send)
	}
	b := evenly(recv.Len(), n)
	return alltoalls[alg](p, b, b, send, recv)
}

// Alltoallv is Alltoall with blocks of any length at any place, packed if displs is nil: rank r's
// sendCounts[i] is rank i's recvCounts[r]. In place: recv is send, so are counts and displs.
func Alltoallv(p Peers, send mem.Buffer, sendCounts, sendDispls []int, recv mem.Buffer, recvCounts,
	recvDispls []int) error {
	return alltoallPairwise(p, placed(p, sendCounts, sendDispls), placed(p, recvCounts, recvDispls), send, recv)
}

// Alltoallw is Alltoall with a buffer for each rank, of any type and length: rank r's send[i] has
// as many bytes as rank i's recv[r]. In place: recv[i] is send[i].
func Alltoallw(p Peers, send, recv []mem.Buffer) error {
	from, to := blocks{p: len(send), each: send}, blocks{p: len(recv), each: recv}
	return alltoallPairwise(p, from, to, mem.Buffer{}, mem.Buffer{})
}

var alltoalls = [path.NumAlgorithms]func(p Peers, from, to blocks, send, recv mem.Buffer) error{
	path.Pairwise: alltoallPairwise,
	path.Bruck:    alltoallBruck,
}

// matches returns the number of rounds in which every two of p ranks meet once.
func matches(p int) int { return p - 1 + p%2 }

// opponent returns the rank that rank r meets in a round of matches(p), or r itself if none: a
// round-robin tournament. Ranks whose sum is the round meet, modulo the number of rounds; if p is
// even the last rank exchanges with the rank left over.
func opponent(round, r, p int) int {
	m := matches(p)
	if p%2 == 0 && r == p-1 { // twice the opponent is the round, modulo m
		return round * ((m + 1) / 2) % m
	}
	o := behind(round, r, m)
	if o == r && p%2 == 0 {
		return p - 1
	}
	return o
}

// window returns the number of exchanges of this many bytes under way at a time: enough to hide the
// start of messages, and no more, as they compete for memory and wires. Messages through pinned
// memory use a larger window, not tuned, so that some are copied while others are on the wire.
func window(bytes int, pinned bool) int {
	together := 256 << 10
	if pinned {
		together = 4 << 20
	}
	return min(max(together/max(bytes, 1), 1), batch)
}

// pinned reports whether b's messages go through pinned memory.
func pinned(b mem.Buffer) bool {
	_, ok := b.Space().(mem.Pinner)
	return ok
}

// alltoallPairwise exchanges blocks with every other rank directly, a few at a time, in the order
// of a tournament: a rank receives from the rank it sends to, so that no rank is the target of all
// at once. p-1 messages and n(p-1)/p bytes per rank. In place it needs scratch for the blocks under
// way, whose number may differ between ranks; not in device memory: the receiver stores nothing
// before the sent block has left. Fastest alltoall in simulation: network, 64 ranks, 1 MiB.
func alltoallPairwise(p Peers, from, to blocks, send, recv mem.Buffer) error {
	r, n := p.Rank(), p.Size()
	if err := move(to.of(recv, r), from.of(send, r)); err != nil {
		return err
	}
	largest, pins := 0, false // bytes of a block, and whether any goes through pinned memory
	for i := range n {
		out := from.of(send, i)
		largest = max(largest, out.Size())
		pins = pins || pinned(out) || pinned(to.of(recv, i))
	}
	w := window(largest, pins)
	var room []byte // for blocks under way in place
	stride := (largest + mem.C128.Size() - 1) / mem.C128.Size()
	for first := 0; first < matches(n); first += w {
		for round := first; round < min(first+w, matches(n)); round++ {
			o := opponent(round, r, n)
			if o == r {
				continue
			}
			out, in := from.of(send, o), to.of(recv, o)
			if out.IsHost() && out.Len() > 0 && mem.Same(out, in) {
				if room == nil {
					room = p.Scratch(mem.Of[complex128](nil), stride*min(w, n)).HostSlice()
				}
				out = mem.HostLike(out, out.Len(), room[(round-first)*stride*mem.C128.Size():])
				if err := move(out, in); err != nil {
					return err
				}
			}
			if in.IsHost() {
				p.Irecv(o, in)
				p.Isend(o, out)
			} else { // recv's block may be the block to send
				p.Isend(o, out)
				p.Irecv(o, in)
			}
		}
		if err := p.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// alltoallBruck forwards blocks in ceil(log2 p) rounds. The block for the rank i ahead travels 2^k
// ranks in each round k whose bit is set in i; all blocks of a round travel in one message. About
// np/2 log2 p bytes of all ranks' n per rank. Bruck et al.: Efficient algorithms for all-to-all
// communications (1997). Fastest alltoall in simulation: cluster, 64 ranks, 8 bytes.
func alltoallBruck(p Peers, from, to blocks, send, recv mem.Buffer) error {
	r, n, size := p.Rank(), p.Size(), from.count(0)
	room := p.Scratch(send, (n+n/2*2)*size)
	// At first at(i) is the block for the rank i ahead, in the end from the rank i behind.
	at := func(i int) mem.Buffer { return room.Slice(i*size, (i+1)*size) }
	for i := range n {
		if err := move(at(i), from.of(send, ahead(r, i, n))); err != nil {
			return err
		}
	}
	for d := 1; d < n; d *= 2 {
		c := bruckBlocks(n, d)
		out, in := n, n+c // where copies begin
		for i, j := d, 0; i < n; i = bruckNext(i, d) {
			if err := move(at(out+j), at(i)); err != nil {
				return err
			}
			j++
		}
		p.Irecv(behind(r, d, n), room.Slice(in*size, (in+c)*size))
		p.Isend(ahead(r, d, n), room.Slice(out*size, in*size))
		if err := p.Wait(); err != nil {
			return err
		}
		for i, j := d, 0; i < n; i = bruckNext(i, d) {
			if err := move(at(i), at(in+j)); err != nil {
				return err
			}
			j++
		}
	}
	for i := range n {
		if err := move(to.of(recv, behind(r, i, n)), at(i)); err != nil {
			return err
		}
	}
	return nil
}

// bruckNext returns the next number after i with bit d set. Bit d of i is set.
func bruckNext(i, d int) int { return (i + 1) | d }

// bruckBlocks returns the count of numbers below p with bit d set.
func bruckBlocks(p, d int) (c int) {
	for i := d; i < p; i = bruckNext(i, d) {
		c++
	}
	return c
}
