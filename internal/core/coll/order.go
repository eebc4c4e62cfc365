package coll

import (
	"gompi/internal/core/call"
	"gompi/internal/mem"
)

// The order of reductions. Floating-point sums depend on the order of additions, and a user's
// function need not commute, so the order is fixed here. Write x[r] for rank r's element. The
// operands of ranks a, a+1, ..., b-1 are combined as
//
//	T(a, a+1) = x[a]
//	T(a, b)   = T(a, a+2^k) op T(a+2^k, b)   with 2^k the largest power of two below b-a
//
// and the result is T(0, p): neighbours first, then pairs of neighbours, and so
// on, with the rest joining from the right. For p = 6:
//
//	((x0 op x1) op (x2 op x3)) op (x4 op x5)
//
// The lower rank's operand always stands on the left. The order does not depend on the length, the
// position of the element, the algorithm or the root. This is the combination tree.
//
// A scan's result on rank r combines the operands of ranks 0 to r by the mirror image of that tree,
//
//	W(a, a+1) = x[a]
//	W(a, b)   = W(a, b-2^k) op W(b-2^k, b)   with 2^k the largest power of two below b-a
//
// as W(0, r+1): a rank that doubles the span of ranks that it knows gets just these. For r = 5:
//
//	(x0 op x1) op ((x2 op x3) op (x4 op x5))
//
// Algorithms over messages that are marked ordered combine like this, and any of them may be taken
// for functions of the user's and in deterministic mode. A Combination combines operands that are
// all at hand. Avg divides the sum once, by the number of operands.

// move copies src to dst, unless they are the same memory.
func move(dst, src mem.Buffer) error {
	if dst.Len() == 0 || mem.Same(dst, src) {
		return nil
	}
	return mem.Copy(dst, src)
}

// A Combination combines operands that are all at hand, in the order above.
type Combination struct {
	Op call.Op
	// Operand returns operand i, which is read-only unless Spare returns it.
	Operand func(i int) mem.Buffer
	// Spare returns memory for the combination of the 2^k operands, or fewer, from i on, which
	// stand on the right of others. The memory is like dst, and overlaps neither dst nor an
	// operand, except that it may be operand i. It is in use until combined with the operands on
	// its left; meanwhile Spare is only called for less k.
	Spare func(dst mem.Buffer, i, k int) mem.Buffer
	// Scan selects the order of a scan.
	Scan bool
}

// Of combines operands lo to hi-1, at least one. The result is in dst or, of a single operand, the
// operand itself; of an Avg it is the sum. dst may be the first operand, and overlaps no other.
func (c *Combination) Of(dst mem.Buffer, lo, hi int) (mem.Buffer, error) {
	if hi-lo == 1 {
		return c.Operand(lo), nil
	}
	k := depth(hi-lo) - 1
	mid := lo + 1<<k
	if c.Scan {
		mid = hi - 1<<k
	}
	a, err := c.Of(dst, lo, mid)
	if err != nil {
		return a, err
	}
	b, err := c.Of(c.Spare(dst, mid, k), mid, hi)
	if err != nil {
		return b, err
	}
	return dst, c.Op.Combine(dst, a, b)
}

// depth returns ceil(log2 n), the rounds in which a rank's message reaches n.
func depth(n int) int {
	k := 0
	for 1<<k < n {
		k++
	}
	return k
}
