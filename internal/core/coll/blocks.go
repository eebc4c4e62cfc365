package coll

import (
	"iter"

	"gompi/internal/mem"
)

// blocks specifies which elements of a buffer belong to which rank.
type blocks struct {
	p, n   int          // ranks, elements in all
	counts []int        // nil: as even as possible, the first n%p blocks an element longer
	starts []int        // with counts
	each   []mem.Buffer // in the place of counts, where each block is a buffer of its own
}

// evenly divides n elements among p ranks.
func evenly(n, p int) blocks { return blocks{p: p, n: n} }

// packed places blocks of the given lengths consecutively. Their starts are in p's scratch.
func packed(p Peers, counts []int) blocks {
	b := blocks{p: len(counts), counts: counts, starts: mem.Slice[int](p.Scratch(mem.Of[int](nil), len(counts)))}
	for i, c := range counts {
		b.starts[i] = b.n
		b.n += c
	}
	return b
}

// placed places blocks at displs, or packed if displs is nil.
func placed(p Peers, counts, displs []int) blocks {
	if displs == nil {
		return packed(p, counts)
	}
	b := blocks{p: len(counts), counts: counts, starts: displs}
	for _, c := range counts {
		b.n += c
	}
	return b
}

func (b blocks) start(i int) int {
	if b.counts != nil {
		return b.starts[i]
	}
	return i*(b.n/b.p) + min(i, b.n%b.p)
}

func (b blocks) count(i int) int {
	if b.counts != nil {
		return b.counts[i]
	}
	if i < b.n%b.p {
		return b.n/b.p + 1
	}
	return b.n / b.p
}

// bounds returns the elements [lo, hi) of block i.
func (b blocks) bounds(i int) (lo, hi int) {
	lo = b.start(i)
	return lo, lo + b.count(i)
}

// of returns block i of buf.
func (b blocks) of(buf mem.Buffer, i int) mem.Buffer {
	if b.each != nil {
		return b.each[i]
	}
	return buf.Slice(b.bounds(i))
}

// span returns blocks [i, j) of buf, j > i, which must be packed.
func (b blocks) span(buf mem.Buffer, i, j int) mem.Buffer {
	return buf.Slice(b.start(i), b.start(j-1)+b.count(j-1))
}

// arc returns the blocks i, i+1, ..., i+c-1 modulo p as one or two ranges of
// neighbours: two where they run past the last block.
func (b blocks) arc(i, c int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		i %= b.p
		first := min(c, b.p-i)
		if yield(i, i+first) && c > first {
			yield(0, c-first)
		}
	}
}

// ahead and behind return the rank d < p places after and before r.
func ahead(r, d, p int) int  { return (r + d) % p }
func behind(r, d, p int) int { return (r - d + p) % p }

// segment returns the number of elements of size bytes in a chunk of a pipeline over hops hops.
// Smaller chunks cost more message starts, larger ones a longer wait for the first chunk. The
// optimum is sqrt(n * size * alpha/beta / hops) bytes.
func segment(n, size, hops int) int {
	// alpha/beta is the number of bytes whose transfer takes as long as a message's start: 10 us
	// at 8 GB/s between processes of one machine.
	const startup = 80 << 10
	if hops < 1 || n*size <= startup {
		return max(n, 1)
	}
	return max(isqrt(n*size/hops)*isqrt(startup)/size, startup/4/size, 1)
}

// isqrt returns the integer square root of x >= 0, without floating point: all ranks need the same.
func isqrt(x int) int {
	lo, hi := 0, 1<<31
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; mid*mid <= x {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}
