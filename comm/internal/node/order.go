package node

import (
	"gompi/comm/internal/call"
	"gompi/comm/internal/coll"
	"gompi/internal/mem"
)

// keepsOrder reports whether operands are combined as coll/order.go says: functions of
// the user's, and all in deterministic mode. Others are combined one after the other, in
// the order of the members and in one pass over the memory.
func (r *Room) keepsOrder(op call.Op) bool { return r.paths.KeepsOrder(op.Kind) }

// combine stores op's result of srcs lo to hi-1 into dst, in the order of a scan if
// scan.
func (r *Room) combine(op call.Op, dst mem.Buffer, lo, hi int, scan bool) error {
	switch {
	case r.keepsOrder(op):
		return r.combineInOrder(op, dst, lo, hi, scan)
	case hi-lo == 2:
		return mem.Reduce(op.Kind, dst, r.srcs[lo], r.srcs[lo+1])
	}
	return mem.Host.Reduce(op.Kind, dst, r.srcs[lo:hi]...)
}

func (r *Room) combineInOrder(op call.Op, dst mem.Buffer, lo, hi int, scan bool) error {
	c := coll.Combination{Op: op, Operand: r.operand, Spare: r.spare, Scan: scan}
	result, err := c.Of(dst, lo, hi)
	if err != nil {
		return err
	}
	if !mem.Same(result, dst) {
		copy(dst.HostSlice(), result.HostSlice())
	}
	return op.Finish(dst, hi-lo)
}

func (r *Room) operand(i int) mem.Buffer { return r.srcs[i] }

// spare returns memory like dst for the right operand of a combination at height k
// of the tree.
func (r *Room) spare(dst mem.Buffer, _, k int) mem.Buffer {
	for len(r.spares) <= k {
		b, _ := mem.Host.Alloc(mem.C128, r.paths.LargestPiece()/mem.C128.Size()) // so few bytes can be had
		r.spares = append(r.spares, b.HostSlice())
	}
	return mem.HostBytes(dst.Type(), dst.Len(), r.spares[k])
}
