package shmcoll

import (
	"gompi/internal/core/call"
	"gompi/internal/core/coll"
	"gompi/internal/mem"
)

// keepsOrder reports whether operands are combined in the order of coll/order.go: by functions,
// and by all operators in deterministic mode. Else operands are combined in the order of the
// members, in a single pass over the memory.
func (c *Collectives) keepsOrder(op call.Op) bool { return c.paths.KeepsOrder(op.Kind) }

// combine stores op's result of srcs lo to hi-1 into dst. scan selects the order of a scan.
func (c *Collectives) combine(op call.Op, dst mem.Buffer, lo, hi int, scan bool) error {
	switch {
	case c.keepsOrder(op):
		return c.combineInOrder(op, dst, lo, hi, scan, c.spare)
	case hi-lo == 2:
		return mem.Reduce(op.Kind, dst, c.srcs[lo], c.srcs[lo+1])
	}
	return mem.ReduceAll(op.Kind, dst, c.srcs[lo:hi]...)
}

func (c *Collectives) combineInOrder(op call.Op, dst mem.Buffer, lo, hi int, scan bool,
	spare func(dst mem.Buffer, i, k int) mem.Buffer) error {
	all := coll.Combination{Op: op, Operand: c.operand, Spare: spare, Scan: scan}
	result, err := all.Of(dst, lo, hi)
	if err != nil {
		return err
	}
	if !mem.Same(result, dst) {
		copy(dst.HostSlice(), result.HostSlice())
	}
	return op.Finish(dst, hi-lo)
}

func (c *Collectives) operand(i int) mem.Buffer { return c.srcs[i] }

// spare returns memory like dst for the right operand of a combination at height k of the tree.
func (c *Collectives) spare(dst mem.Buffer, _, k int) mem.Buffer {
	for len(c.spares) <= k {
		b, _ := mem.Host.Alloc(mem.C128, c.paths.LargestChunk()/mem.C128.Size()) // so few bytes can be had
		c.spares = append(c.spares, b.HostSlice())
	}
	return mem.HostLike(dst, dst.Len(), c.spares[k])
}
