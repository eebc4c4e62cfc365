package mpi

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/typemap"
)

func init() { jobs["reductions"] = allReductions }

func TestReductionsKeepTheOrderOfRanks(t *testing.T) {
	for _, n := range []int{1, 2, 4, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			ranks(t, n, "reductions")
		})
	}
}

// What is combined are functions x -> a*x+b modulo 997, one after the other: that is associative,
// and does not commute. An element has a and b as two cells.
type affine struct{ a, b int }

func (f affine) then(g affine) affine { return affine{f.a * g.a % 997, (f.b*g.a + g.b) % 997} }

func affineOf(rank, k int) affine { return affine{2 + (rank+3*k)%90, 1 + rank + k} }

// folded returns element k, combined from rank lo to rank hi-1.
func folded(lo, hi, k int) affine {
	f := affineOf(lo, k)
	for r := lo + 1; r < hi; r++ {
		f = f.then(affineOf(r, k))
	}
	return f
}

// pairShapes have two cells.
func pairShapes() ([]shape, error) {
	var made []shape
	var err error
	for _, s := range []struct {
		shape
		places abi.Array
		lb     int
	}{
		{shape{name: "dense", cells: []int{0, 1}, extent: 2}, array(0, 1), 0},
		{shape{name: "gaps", cells: []int{0, 3}, extent: 4}, array(0, 3), 0},
		{shape{name: "before", cells: []int{-2, 1}, extent: 4}, array(-2, 1), -2},
		{shape{name: "outside its bounds", cells: []int{0, 3}, extent: 2}, array(0, 3), 0},
		{shape{name: "before its bounds", cells: []int{-3, 0}, extent: 2}, array(-3, 0), 0},
	} {
		var data abi.Handle
		err = errors.Join(err, do("Type_indexed", 2, array(1, 1), s.places, intHandle, &data),
			do("Type_create_resized", data, 4*s.lb, 4*s.extent, &s.handle), do("Type_commit", &s.handle))
		made = append(made, s.shape)
	}
	return made, err
}

// A reducer runs reductions of n elements of a shape.
type reducer struct {
	s        *shape
	op       abi.Handle
	n        int
	size, me int
}

func allReductions() error {
	shapes, err := pairShapes()
	if err != nil {
		return err
	}
	byHandle := map[abi.Handle]*shape{}
	for i := range shapes {
		byHandle[shapes[i].handle] = &shapes[i]
	}
	operatorsOfTests[1] = func(in, inout abi.Addr, n int, datatype abi.Handle) {
		s := byHandle[datatype]
		for k := range n {
			f, g := s.load(in, k), s.load(inout, k)
			s.save(inout, k, f.then(g))
		}
	}
	var op abi.Handle
	if err := do("Op_create", abi.Addr(1), 0, &op); err != nil {
		return err
	}
	for i := range shapes {
		for _, n := range []int{1, 7, 3000} {
			v := &reducer{&shapes[i], op, n, comms.World.P2P.Size(), comms.World.P2P.Rank()}
			if err := v.all(); err != nil {
				return fmt.Errorf("%d of %s: %w", n, shapes[i].name, err)
			}
		}
	}
	return errors.Join(pairsOfMPI(), nothingToCombine(), do("Op_free", &op))
}

func (s *shape) load(at abi.Addr, k int) affine {
	return affine{int(*s.cell(at, k, 0)), int(*s.cell(at, k, 1))}
}

func (s *shape) save(at abi.Addr, k int, f affine) {
	*s.cell(at, k, 0), *s.cell(at, k, 1) = int32(f.a), int32(f.b)
}

func (s *shape) cell(at abi.Addr, k, i int) *int32 {
	return (*int32)(at.Plus(4 * (k*s.extent + s.cells[i])).Pointer())
}

// operands returns this rank's elements from lo to hi-1.
func (v *reducer) operands(lo, hi int) ([]int32, int) {
	return v.elements(lo, hi, func(k int) affine { return affineOf(v.me, k) })
}

func (v *reducer) elements(lo, hi int, f func(k int) affine) ([]int32, int) {
	b, at := v.s.room(hi - lo)
	for k := lo; k < hi; k++ {
		x := f(k)
		v.s.put(b, at, k-lo, []int{x.a, x.b})
	}
	return b, at
}

// run runs a reduction of operands lo to hi-1 in its three forms, apart and in place. want is nil
// where nothing is stored.
func (v *reducer) run(name string, total, n int, want []int32, middle ...any) error {
	send, sat := v.operands(0, total)
	recv, rat := v.s.room(n)
	empty := slices.Clone(recv)
	if want == nil {
		want = empty
	}
	again, verify := into(recv, want)
	arguments := slices.Concat([]any{addr(send[sat:]), addr(recv[rat:])}, middle, []any{world0})
	return three(name, arguments, again, verify)
}

func (v *reducer) all() error {
	result := func(lo, hi int, f func(k int) affine) []int32 {
		b, _ := v.elements(lo, hi, f)
		return b
	}
	everyone := func(k int) affine { return folded(0, v.size, k) }
	if err := v.run("Allreduce", v.n, v.n, result(0, v.n, everyone), v.n, v.s.handle, v.op); err != nil {
		return err
	}
	for root := range v.size {
		var want []int32
		if v.me == root {
			want = result(0, v.n, everyone)
		}
		if err := v.run("Reduce", v.n, v.n, want, v.n, v.s.handle, v.op, root); err != nil {
			return err
		}
	}
	if err := v.run("Scan", v.n, v.n, result(0, v.n, func(k int) affine { return folded(0, v.me+1, k) }), v.n,
		v.s.handle, v.op); err != nil {
		return err
	}
	var want []int32
	if v.me > 0 {
		want = result(0, v.n, func(k int) affine { return folded(0, v.me, k) })
	}
	if err := v.run("Exscan", v.n, v.n, want, v.n, v.s.handle, v.op); err != nil {
		return err
	}
	return v.scattered(result, everyone)
}

func (v *reducer) scattered(result func(lo, hi int, f func(k int) affine) []int32, everyone func(k int) affine) error {
	lo := v.me * v.n
	if err := v.run("Reduce_scatter_block", v.n*v.size, v.n, result(lo, lo+v.n, everyone), v.n, v.s.handle,
		v.op); err != nil {
		return err
	}
	counts, at, total := make([]int, v.size), 0, 0
	for r := range counts {
		counts[r] = (r + 1) % 3 * v.n / 2
		if r < v.me {
			at += counts[r]
		}
		total += counts[r]
	}
	mine := counts[v.me]
	if err := v.run("Reduce_scatter", total, mine, result(at, at+mine, everyone), array(counts...), v.s.handle,
		v.op); err != nil {
		return err
	}
	b, bat := v.operands(0, v.n)
	again, verify := into(b, result(0, v.n, everyone))
	return three("Allreduce", []any{abi.InPlace, addr(b[bat:]), v.n, v.s.handle, v.op, world0}, again, verify)
}

// nothingToCombine reduces elements without data, which have no bounds, or some.
func nothingToCombine() error {
	operatorsOfTests[2] = func(in, inout abi.Addr, n int, datatype abi.Handle) {}
	var op, empty, wide abi.Handle
	b := []int32{gap}
	err := errors.Join(do("Op_create", abi.Addr(2), 1, &op), do("Type_contiguous", 0, intHandle, &empty),
		do("Type_create_resized", empty, 0, 8, &wide))
	for _, h := range []*abi.Handle{&empty, &wide} {
		err = errors.Join(err, do("Type_commit", h), do("Allreduce", addr(b), addr(b), 3, *h, op, world0),
			wants("gap", &b[0], gap), do("Type_free", h))
	}
	return errors.Join(err, do("Op_free", &op))
}

// MPI_MAXLOC finds the greatest value, and of equal ones the lowest rank's.
func pairsOfMPI() error {
	me, size := comms.World.P2P.Rank(), comms.World.P2P.Size()
	const maxloc = 0x39
	type doubleIntPair struct {
		value float64
		index int32
	}
	h := abi.Handle(0)
	for t := range typemap.All() {
		if t.Basic().Name == "MPI_DOUBLE_INT" {
			h = abi.Handle(t.Basic().ID)
		}
	}
	in, out := []doubleIntPair{{float64(min(me, 2)), int32(me)}, {float64(-me), int32(me)}}, make([]doubleIntPair, 2)
	if err := do("Allreduce", addr(in), addr(out), 2, h, abi.Handle(maxloc), world0); err != nil {
		return err
	}
	want := []doubleIntPair{{float64(min(size-1, 2)), int32(min(size-1, 2))}, {0, 0}}
	return errors.Join(wants("pair 0", &out[0], want[0]), wants("pair 1", &out[1], want[1]))
}
