package typemap

import (
	"iter"
	"math/bits"

	"gompi/internal/core/layout"
)

// A block is count groups of length elements of a type, stride bytes apart, from disp on.
type block struct {
	disp, count, stride, length int
	t                           *Type
}

func (b *block) empty() bool { return b.count == 0 || b.length == 0 }

// most bounds sizes and displacements, so that sums of them do not overflow.
const most = 1 << 61

// check tells whether the size or a displacement of the block would overflow.
func (b *block) check() error {
	count, length := float64(b.count), float64(b.length)
	size := count * length * float64(b.t.size)
	reach := abs(b.disp) + count*abs(b.stride) + length*abs(b.t.Ub()-b.t.lb) + max(abs(b.t.lb), abs(b.t.Ub()))
	if size > most || reach > most {
		return wrong(ErrCount, "the type has %d times %d elements of %d bytes: want fewer than 2^61 bytes in all",
			b.count, b.length, b.t.size)
	}
	return nil
}

// Times returns the product of two numbers, and whether sums of a few such products do not
// overflow.
func Times(n, m int) (product int, ok bool) {
	over, low := bits.Mul64(uint64(max(n, -n)), uint64(max(m, -m)))
	return n * m, over == 0 && low <= most
}

func abs(n int) float64 { return max(float64(n), -float64(n)) }

// build makes the type of some blocks, without its Contents. The blocks are a sequence, so that
// types of a million blocks need no second list of them.
func build(blocks iter.Seq[block]) (*Type, error) {
	t := &Type{align: 1}
	var lower, upper bound
	size := 0.0
	for b := range blocks {
		if b.empty() {
			continue
		}
		if err := b.check(); err != nil {
			return nil, err
		}
		if size += float64(b.count) * float64(b.length) * float64(b.t.size); size > most {
			return nil, wrong(ErrCount, "the type has more than 2^61 bytes")
		}
		t.count(&b)
		far, wide := (b.count-1)*b.stride, (b.length-1)*b.t.extent
		lower.meet(b.disp+b.t.lb+min(0, far)+min(0, wide), b.t.lbMark, b.t.size > 0)
		upper.meet(-(b.disp + b.t.Ub() + max(0, far) + max(0, wide)), b.t.ubMark, b.t.size > 0)
	}
	t.bound(lower, upper)
	t.whole = []layout.Layout{compile(blocks, func(t *Type) layout.Layout { return *t.layout() })}
	if t.size > 0 && t.uniform == nil {
		mixed := compile(blocks, (*Type).byElements)
		t.mixed = &mixed
	}
	return t, nil
}

// count adds the elements of a block.
func (t *Type) count(b *block) {
	n := b.count * b.length
	if b.t.size > 0 {
		if t.size == 0 {
			t.uniform = b.t.uniform
		} else if t.uniform != b.t.uniform {
			t.uniform = nil
		}
	}
	t.size += n * b.t.size
	t.external += n * b.t.external
	t.elements += n * b.t.elements
	t.align = max(t.align, b.t.align)
	t.signature = t.signature.and(b.t.signature.times(n))
}

// compile builds the layout of some blocks from the layouts of their types.
func compile(blocks iter.Seq[block], of func(*Type) layout.Layout) layout.Layout {
	var whole layout.Builder
	for b := range blocks {
		if b.empty() {
			continue
		}
		l := of(b.t)
		l = l.Times(b.length, b.t.extent)
		l = l.Times(b.count, b.stride)
		whole.Add(l.At(b.disp))
	}
	return whole.Layout()
}

// A bound is the lower bound of a type, or its upper bound times -1, as MPI defines them: the
// least displacement, or the least marker, if there are any.
type bound struct {
	at          int
	known, mark bool
}

// meet updates b by the bound of a part of the type. Parts without data or marker have no bound.
func (b *bound) meet(at int, mark, data bool) {
	switch {
	case !mark && (!data || b.mark):
	case !b.known || mark && !b.mark:
		*b = bound{at, true, mark}
	default:
		b.at = min(b.at, at)
	}
}

// bound sets the bounds. Unless a marker says otherwise, the extent is rounded up to the
// elements' alignment.
func (t *Type) bound(lower, upper bound) {
	lb, ub := lower.at, -upper.at
	if !lower.known {
		lb = min(0, ub)
	}
	if !upper.known {
		ub = max(0, lb)
	}
	if over := (ub - lb) % t.align; !upper.mark && over != 0 {
		ub += (t.align - over) % t.align
	}
	t.lb, t.extent, t.lbMark, t.ubMark = lb, ub-lb, lower.mark, upper.mark
}
