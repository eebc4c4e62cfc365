package node

import (
	"gompi/comm/internal/coll"
	"gompi/internal/mem"
)

// keepsOrder reports whether operands are combined as coll/order.go says, or a
// scan's as coll/scan.go says: functions of the user's, and all in deterministic
// mode. Others are combined one after the other, in the order of the members and
// in one pass over the memory.
func (r *Room) keepsOrder(op coll.Op) bool { return r.ordered || op.Kind == mem.Custom }

// tree returns the combination of srcs lo to hi-1 by the combination tree. It is
// in dst, which overlaps no operand, or else the operand itself, if there is one.
func (r *Room) tree(op coll.Op, dst mem.Buffer, lo, hi int) (mem.Buffer, error) {
	if hi-lo == 1 {
		return r.srcs[lo], nil
	}
	k := height(hi-lo) - 1
	mid := lo + 1<<k
	a, err := r.tree(op, dst, lo, mid)
	if err != nil {
		return a, err
	}
	b, err := r.tree(op, r.spare(k, dst), mid, hi)
	if err != nil {
		return b, err
	}
	return dst, op.Combine(dst, a, b)
}

// window is tree for the 2^k operands up to member m, or as many as there are, in
// the order of a scan.
func (r *Room) window(op coll.Op, dst mem.Buffer, m, k int) (mem.Buffer, error) {
	if k == 0 {
		return r.srcs[m], nil
	}
	k--
	if m < 1<<k {
		return r.window(op, dst, m, k)
	}
	a, err := r.window(op, dst, m-1<<k, k)
	if err != nil {
		return a, err
	}
	b, err := r.window(op, r.spare(k, dst), m, k)
	if err != nil {
		return b, err
	}
	return dst, op.Combine(dst, a, b)
}

// height returns ceil(log2 n).
func height(n int) int {
	k := 0
	for 1<<k < n {
		k++
	}
	return k
}

// spare returns memory like dst for the right operand of a combination at height k
// of the tree: while it is in use, others are combined only below.
func (r *Room) spare(k int, dst mem.Buffer) mem.Buffer {
	for len(r.spares) <= k {
		b, _ := mem.Host.Alloc(mem.C128, max(pieceLeast, r.pieceMost())/mem.C128.Size()) // so few bytes can be had
		r.spares = append(r.spares, b.HostSlice())
	}
	return mem.HostBytes(dst.Type(), dst.Len(), r.spares[k])
}

// combine stores op's result of srcs lo to hi-1 into dst, in the order of a scan if
// scan.
func (r *Room) combine(op coll.Op, dst mem.Buffer, lo, hi int, scan bool) (err error) {
	result := dst
	switch {
	case !r.keepsOrder(op) && hi-lo == 2:
		return mem.Reduce(op.Kind, dst, r.srcs[lo], r.srcs[lo+1])
	case !r.keepsOrder(op):
		return mem.Host.Reduce(op.Kind, dst, r.srcs[lo:hi]...)
	case scan:
		result, err = r.window(op, dst, hi-1, height(hi))
	default:
		result, err = r.tree(op, dst, lo, hi)
	}
	if err == nil && !mem.Same(result, dst) {
		copy(dst.HostSlice(), result.HostSlice())
	}
	if err != nil {
		return err
	}
	return op.Finish(dst, hi-lo)
}
