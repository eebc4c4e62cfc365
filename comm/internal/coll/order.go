package coll

import "gompi/internal/mem"

// The combination tree.
//
// Floating-point sums depend on the order of additions, and a user's function
// need not commute, so one order is fixed here. Write x[r] for rank r's
// element. The operands of ranks a, a+1, ..., b-1 are combined as
//
//	T(a, a+1) = x[a]
//	T(a, b)   = T(a, a+2^k) op T(a+2^k, b)   with 2^k the largest power of two below b-a
//
// and the result is T(0, p): neighbours first, then pairs of neighbours, and so
// on, what is left over joining from the right. For p = 6:
//
//	((x0 op x1) op (x2 op x3)) op (x4 op x5)
//
// The lower rank's operand always stands on the left. Nothing else enters: not
// the length, not the position of the element, not the algorithm, not the root.
// Algorithms marked ordered combine like this, and any of them may be taken for
// functions of the user's and in deterministic mode. (Scan and Exscan have an
// order of their own; see scan.go.) Avg divides T's sum once, by p.

// sum returns the operator that messages carry: Avg travels as a sum.
func (op Op) sum() Op {
	op.Kind = op.Kind.Base()
	return op
}

// Finish makes the combined elements b the result of op over n ranks.
func (op Op) Finish(b mem.Buffer, n int) error {
	if op.Kind != mem.Avg || b.Len() == 0 {
		return nil
	}
	return mem.Divide(b, n)
}

// Combine stores a op b into dst, which is a or overlaps neither.
func (op Op) Combine(dst, a, b mem.Buffer) error {
	if op.Kind != mem.Custom {
		return mem.Reduce(op.Kind.Base(), dst, a, b)
	}
	if err := move(dst, a); err != nil {
		return err
	}
	op.Func(dst, b)
	return nil
}

// move copies src to dst, unless they are the same memory.
func move(dst, src mem.Buffer) error {
	if dst.Len() == 0 || mem.Same(dst, src) {
		return nil
	}
	return mem.Copy(dst, src)
}

// A tree is the combination tree laid over the ranks, for algorithms in which
// one rank collects or distributes: the aligned block of ranks j*2^k up to
// (j+1)*2^k is one node, and one of its ranks stands for it, the root where it
// is in the block, else the first. It is a binomial tree, ceil(log2 p) deep,
// for every root; children's ranks are contiguous, so what belongs to them is
// one piece of a rank-ordered buffer.
type tree struct{ size, root int }

// stand returns the rank that stands for the block of 2^k ranks that holds r.
func (t tree) stand(r, k int) int {
	if r>>k == t.root>>k {
		return t.root
	}
	return r >> k << k
}

// top returns the level at which r hands over to its parent: it stands for all
// its blocks below. For the root it is the depth of the tree.
func (t tree) top(r int) int {
	k := 0
	for 1<<k < t.size && t.stand(r, k+1) == r {
		k++
	}
	return k
}

// parent returns who stands for the block above r's top.
func (t tree) parent(r int) int { return t.stand(r, t.top(r)+1) }

// child returns the rank that stands for the sibling of r's block at level k <
// top, and the ranks [lo, hi) of that block. There is none if lo >= hi.
func (t tree) child(r, k int) (c, lo, hi int) {
	lo = (r>>k ^ 1) << k
	return t.stand(lo, k), lo, min(lo+1<<k, t.size)
}

// span returns the ranks [lo, hi) that r stands for at its top.
func (t tree) span(r int) (lo, hi int) {
	k := t.top(r)
	lo = r >> k << k
	return lo, min(lo+1<<k, t.size)
}

// height returns the longest way from a rank to the root, in messages.
func (t tree) height() int {
	h := 0
	for r := range t.size {
		hops := 0
		for ; r != t.root; r = t.parent(r) {
			hops++
		}
		h = max(h, hops)
	}
	return h
}

// volume returns how many elements travel when every rank's block goes through
// the tree between it and the root.
func (t tree) volume(b blocks) int {
	n := 0
	for r := range t.size {
		if r == t.root {
			continue
		}
		lo, hi := t.span(r)
		for i := lo; i < hi; i++ {
			n += b.count(i)
		}
	}
	return n
}

// depth returns ceil(log2 n), the rounds in which one rank's message reaches n.
func depth(n int) int {
	k := 0
	for 1<<k < n {
		k++
	}
	return k
}
