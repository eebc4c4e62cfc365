package comms

import (
	"gompi/internal/core"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/errs"
)

var Groups = abi.NewRegistry(abi.GroupNull, func(g *Group) abi.Handle { return g.Handle })

func init() { Groups.Set(emptyGroup.Handle, emptyGroup) }

// A Group is a group with a handle.
type Group struct {
	core.Group
	Handle  abi.Handle
	session *Session // the session of the group, nil if none
}

var emptyGroup = &Group{Handle: abi.GroupEmpty}

// newGroup gives g a handle. s is the group's session, or nil.
func newGroup(g core.Group, s *Session) *Group {
	if g.Size() == 0 {
		return emptyGroup
	}
	n := &Group{Group: g, session: s}
	n.Handle = Groups.Add(n)
	return n
}

// NewGroup gives g a handle.
func NewGroup(g core.Group) *Group { return newGroup(g, nil) }

// Check returns an error if g is not valid.
func (g *Group) Check() error {
	if g == nil {
		return errs.New(errs.Group, "the group is not valid")
	}
	return nil
}

func GroupSize(g *Group) (int, error) {
	return g.Size(), nil
}

func GroupRank(g *Group) (int, error) {
	if r := self.P2P.Group().Translate(g.Group)[0]; r >= 0 {
		return r, nil
	}
	return abi.Undefined, nil
}

func GroupTranslateRanks(g *Group, n int, ranks abi.Array, h *Group, out abi.Array) error {
	if err := h.Check(); err != nil {
		return err
	}
	if n > 0 && (ranks == 0 || out == 0) {
		return errs.New(errs.Arg, "the ranks are NULL")
	}
	to, result := g.Translate(h.Group), out.Ints(n)
	for i, r := range ranks.Ints(n) {
		switch {
		case int(r) == abi.C.ProcNull:
			result[i] = r
		case r < 0 || int(r) >= len(to):
			return errs.New(errs.Rank, "rank %d is not from 0 to %d", r, len(to)-1)
		case to[r] < 0:
			result[i] = int32(abi.C.Undefined)
		default:
			result[i] = int32(to[r])
		}
	}
	return nil
}

func GroupCompare(g, h *Group) (int, error) {
	if err := h.Check(); err != nil {
		return 0, err
	}
	return compare(g.Group, h.Group), nil
}

func compare(g, h core.Group) int {
	if g.Size() != h.Size() {
		return abi.Unequal
	}
	result := abi.Identical
	for i, r := range g.Translate(h) {
		switch {
		case r < 0:
			return abi.Unequal
		case r != i:
			result = abi.Similar
		}
	}
	return result
}

func combined(g, h *Group, f func(g, h core.Group) core.Group) (*Group, error) {
	if err := h.Check(); err != nil {
		return nil, err
	}
	return newGroup(f(g.Group, h.Group), g.session), nil
}

func GroupUnion(g, h *Group) (*Group, error)        { return combined(g, h, core.Group.Union) }
func GroupIntersection(g, h *Group) (*Group, error) { return combined(g, h, core.Group.Intersection) }
func GroupDifference(g, h *Group) (*Group, error)   { return combined(g, h, core.Group.Difference) }

func GroupIncl(g *Group, n int, ranks abi.Array) (*Group, error) {
	return g.chooseListed(n, ranks, core.Group.Incl)
}

func GroupExcl(g *Group, n int, ranks abi.Array) (*Group, error) {
	return g.chooseListed(n, ranks, core.Group.Excl)
}

func GroupRangeIncl(g *Group, n int, ranges abi.Array) (*Group, error) {
	return g.chooseRanges(n, ranges, core.Group.Incl)
}

func GroupRangeExcl(g *Group, n int, ranges abi.Array) (*Group, error) {
	return g.chooseRanges(n, ranges, core.Group.Excl)
}

// checkList checks a list of ranks, or of ranges of ranks.
func checkList(n int, list abi.Array) error {
	switch {
	case n < 0:
		return errs.New(errs.Arg, "n is %d: want 0 or more", n)
	case n > 0 && list == 0:
		return errs.New(errs.Arg, "the ranks are NULL: want %d", n)
	}
	return nil
}

// A choice makes a group of some ranks of another.
type choice func(core.Group, ...int) (core.Group, error)

func (g *Group) chooseListed(n int, ranks abi.Array, f choice) (*Group, error) {
	if err := checkList(n, ranks); err != nil {
		return nil, err
	}
	if n > g.Size() {
		return nil, errs.New(errs.Rank, "n is %d: want at most %d, the size of the group", n, g.Size())
	}
	return g.choose(ranks.List(n), f)
}

func (g *Group) chooseRanges(n int, ranges abi.Array, f choice) (*Group, error) {
	ranks, err := g.expand(n, ranges)
	if err != nil {
		return nil, err
	}
	return g.choose(ranks, f)
}

func (g *Group) choose(ranks []int, f choice) (*Group, error) {
	h, err := f(g.Group, ranks...)
	if err != nil {
		return nil, &errs.Error{Class: errs.Rank, Cause: err}
	}
	return newGroup(h, g.session), nil
}

// expand returns the ranks of n triplets (first, last, stride): at most one more than g has, in
// which case a rank is named twice.
func (g *Group) expand(n int, ranges abi.Array) (ranks []int, err error) {
	if err := checkList(n, ranges); err != nil {
		return nil, err
	}
	for x := ranges.List(3 * n); len(x) > 0; x = x[3:] {
		first, last, stride := x[0], x[1], x[2]
		switch {
		case stride == 0:
			return nil, errs.New(errs.Arg, "the stride of range (%d, %d, 0) is 0", first, last)
		case first < 0 || first >= g.Size():
			return nil, errs.New(errs.Rank, "range (%d, %d, %d) begins outside the group of %d", first, last,
				stride, g.Size())
		}
		steps := (last - first) / stride
		if end := first + steps*stride; steps > 0 && (end < 0 || end >= g.Size()) {
			return nil, errs.New(errs.Rank, "range (%d, %d, %d) ends at rank %d, outside the group of %d", first, last,
				stride, end, g.Size())
		}
		for r := first; (stride > 0 && r <= last || stride < 0 && r >= last) && len(ranks) <= g.Size(); r += stride {
			ranks = append(ranks, r)
		}
	}
	return ranks, nil
}

func GroupFree(h *abi.Handle) error {
	g := Groups.Find(*h)
	if g == nil {
		return errs.New(errs.Group, "the group is not valid")
	}
	if g != emptyGroup {
		Groups.Remove(*h)
	}
	*h = Groups.Null
	return nil
}
