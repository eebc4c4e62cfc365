package sampler

import "math/bits"

// A permutation maps [0, n) one-to-one onto itself in a random-looking order, without a table. A
// Feistel network permutes the next even power of two. Numbers outside [0, n) pass the network
// again until they fall inside (fewer than four times on average).
type permutation struct {
	n    uint64
	half uint // bits of each half
	keys [4]uint64
}

func newPermutation(n, seed, epoch uint64) permutation {
	p := permutation{n: n, half: uint(bits.Len64(n-1)+1) / 2}
	for i := range p.keys {
		seed = scramble(seed + scramble(epoch) + uint64(i) + 1)
		p.keys[i] = seed
	}
	return p
}

// at returns the number at index i < n.
func (p permutation) at(i uint64) uint64 {
	for {
		i = p.pass(i)
		if i < p.n {
			return i
		}
	}
}

func (p permutation) pass(i uint64) uint64 {
	mask := uint64(1)<<p.half - 1
	left, right := i>>p.half, i&mask
	for _, key := range p.keys {
		left, right = right, left^(scramble(right^key)&mask)
	}
	return left<<p.half | right
}

// scramble is one-to-one, and each bit of its result depends on all of x.
func scramble(x uint64) uint64 {
	x *= 0x9e3779b97f4a7c15
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	return x
}
