package coll

// A tree is the combination tree over the ranks, for algorithms with a root. Each aligned block of
// ranks j*2^k to (j+1)*2^k-1 is a node of the tree, represented by a rank of the block: the root if
// in the block, else the first. The tree is binomial, ceil(log2 p) deep, for every root; children's
// ranks are contiguous, so their data is one chunk of a rank-ordered buffer.
type tree struct{ size, root int }

// stand returns the rank that represents the block of 2^k ranks that holds r.
func (t tree) stand(r, k int) int {
	if r>>k == t.root>>k {
		return t.root
	}
	return r >> k << k
}

// top returns the level at which r sends to its parent: r represents all its smaller blocks. For
// the root it is the depth of the tree.
func (t tree) top(r int) int {
	k := 0
	for 1<<k < t.size && t.stand(r, k+1) == r {
		k++
	}
	return k
}

// parent returns the rank that represents the block above r's top.
func (t tree) parent(r int) int { return t.stand(r, t.top(r)+1) }

// child returns the rank that represents the sibling of r's block at level k < top, and the ranks
// [lo, hi) of that block. There is none if lo >= hi.
func (t tree) child(r, k int) (c, lo, hi int) {
	lo = (r>>k ^ 1) << k
	return t.stand(lo, k), lo, min(lo+1<<k, t.size)
}

// span returns the ranks [lo, hi) that r represents at its top.
func (t tree) span(r int) (lo, hi int) {
	k := t.top(r)
	lo = r >> k << k
	return lo, min(lo+1<<k, t.size)
}
