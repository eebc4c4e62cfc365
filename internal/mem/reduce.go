package mem

import "fmt"

// Defined reports whether op can reduce elements of type t:
//
//   - Sum and Prod: numbers, complex ones included.
//   - Avg: the same but integers, whose sum may wrap where their average would not.
//   - Min and Max: numbers but complex ones, which have no order.
//   - LAnd, LOr and LXor: integers and Bool.
//   - BAnd, BOr and BXor: integers, and Bool, where they are the logical ones.
//   - MinLoc and MaxLoc: the Loc types.
//   - NoOp and Custom: none.
func (op Op) Defined(t Type) bool {
	return op < numOps && t < numTypes && kernels[op][t] != nil
}

// Base returns the operator that combines partial results of op: Sum for Avg, whose result is then
// divided once, at the end; op itself for any other.
func (op Op) Base() Op {
	if op == Avg {
		return Sum
	}
	return op
}

// Reduce stores a op b into dst, element by element. All three are host memory of one Type and
// length; dst may be exactly a or b, else it overlaps neither. Reduce allocates nothing.
//
// Integers wrap around. The result of Min and Max is NaN if an operand is NaN, and -0 is less than
// +0. The logical operators take every value but 0 for true, and give 0 or 1. MinLoc and MaxLoc
// give the pair with the least or greatest Value; of equal values (-0 and +0 are) the pair with the
// lowest Index, and a NaN goes before any number. If there are several NaNs, any of them may
// result. Avg gives (a+b)/2, divided as Divide does: in pairs it gives no average of more than two
// operands, so reduce with op.Base and then Divide, or with ReduceAll. 16-bit floats are combined
// in float32, also by Avg, then rounded to nearest even.
func Reduce(op Op, dst, a, b Buffer) error {
	if err := checkOperands(op, dst, a, b); err != nil {
		return err
	}
	kernels[op][dst.kind.typ](dst.host, a.host, b.host, dst.n)
	return nil
}

func checkOperands(op Op, dst, a, b Buffer) error {
	if (dst.kind != a.kind || dst.kind != b.kind) && (dst.Type() != a.Type() || dst.Type() != b.Type()) {
		return fmt.Errorf("reduce of %v and %v to %v: want one type", a.Type(), b.Type(), dst.Type())
	}
	if !op.Defined(dst.Type()) {
		return fmt.Errorf("operator %v is not defined for %v", op, dst.Type())
	}
	if dst.n != a.n || dst.n != b.n {
		return fmt.Errorf("reduce of %d and %d elements to %d: want equal numbers", a.n, b.n, dst.n)
	}
	if dst.kind != a.kind || dst.kind != b.kind || !dst.IsHost() { // a type has one kind of host memory
		return fmt.Errorf("reduce of %s and %s to %s: want host memory", a.Space().Name(), b.Space().Name(),
			dst.Space().Name())
	}
	return nil
}

// Copy copies src to dst, of equal byte size, in host memory or one other Space. In host memory
// they may overlap.
func Copy(dst, src Buffer) error {
	switch {
	case dst.IsHost() && src.IsHost():
		return Host.Copy(dst, src)
	case dst.Size() != src.Size():
		return fmt.Errorf("copy of %d bytes to a buffer of %d bytes", src.Size(), dst.Size())
	case dst.IsHost():
		return src.kind.space.Copy(dst, src)
	case src.IsHost() || src.kind.space == dst.kind.space || dst.kind.scattered:
		return dst.kind.space.Copy(dst, src)
	case src.kind.scattered:
		return src.kind.space.Copy(dst, src)
	}
	return fmt.Errorf("copy from %s to %s: want host memory on one side", src.Space().Name(), dst.Space().Name())
}

// CopyAll copies each of srcs to the dst with its number, as Copy does. It waits once if all memory
// other than host memory is in one Space, a Batcher.
func CopyAll(dsts, srcs []Buffer) error {
	if len(dsts) == 0 {
		return nil
	}
	at := dsts[0]
	if at.IsHost() {
		at = srcs[0]
	}
	if b, ok := at.Space().(Batcher); ok && len(dsts) > 1 {
		return b.CopyAll(dsts, srcs)
	}
	for i, dst := range dsts {
		if err := Copy(dst, srcs[i]); err != nil {
			return err
		}
	}
	return nil
}
