package mpi

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
)

const world0 = abi.Handle(abi.CommWorld)

// Numbers of MPI_INT and MPI_SUM.
const (
	intHandle = abi.Handle(0x209)
	sumHandle = abi.Handle(0x21)
)

func init() { jobs["collectives"], jobs["between"] = allCollectives, allBetween }

func TestCollectivesMoveWhatMPISays(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			ranks(t, n, "collectives")
		})
	}
}

// A shape is a datatype of some int32 cells: cell i of element k lies at k*extent+cells[i] int32s
// from the buffer.
type shape struct {
	name   string
	handle abi.Handle
	cells  []int
	extent int
	lo     int // the lowest cell
}

// shapes are an int, runs of ints, ints with gaps, backward, and behind a negative lower bound.
func shapes() ([]shape, error) {
	made := []shape{{name: "int", handle: intHandle, cells: []int{0}, extent: 1}}
	var err error
	add := func(name string, cells []int, extent int, function string, args ...any) {
		h := abi.Handle(abi.DatatypeNull)
		if e := do(function, append(args, &h)...); e != nil {
			err = errors.Join(err, e)
			return
		}
		err = errors.Join(err, do("Type_commit", &h))
		made = append(made, shape{name, h, cells, extent, slices.Min(cells)})
	}
	add("run", []int{0, 1, 2}, 3, "Type_contiguous", 3, intHandle)
	add("gaps", []int{0, 1, 4, 5}, 6, "Type_vector", 2, 2, 4, intHandle)
	add("backward", []int{6, 0, 3}, 7, "Type_indexed", 3, array(1, 1, 1), array(6, 0, 3), intHandle)
	add("before", []int{-2, 1}, 4, "Type_indexed", 2, array(1, 1), array(-2, 1), intHandle)
	return made, err
}

// gap is what lies where no cell does.
const gap = -77

// room returns a buffer for n elements, and the index in it of the address that MPI gets.
func (s *shape) room(n int) ([]int32, int) {
	b := make([]int32, n*s.extent+16)
	for i := range b {
		b[i] = gap
	}
	return b, 4
}

// put stores values from element k on.
func (s *shape) put(b []int32, at, k int, values []int) {
	for i, v := range values {
		b[at+(k+i/len(s.cells))*s.extent+s.cells[i%len(s.cells)]] = int32(v)
	}
}

// same returns an error unless got is what want is, gaps included.
func same(what string, got, want []int32) error {
	for i := range got {
		if got[i] != want[i] {
			return fmt.Errorf("%s: %d at %d of %d: want %d", what, got[i], i, len(got), want[i])
		}
	}
	return nil
}

// value is cell i of what rank r has for rank to.
func value(r, to, i int) int { return 10000*r + 100*to + i }

func values(r, to, n int) []int {
	v := make([]int, n)
	for i := range v {
		v[i] = value(r, to, i)
	}
	return v
}

// three runs a collective in its three forms. again prepares the buffers, verify looks at them.
func three(name string, arguments []any, again func(), verify func(form string) error) error {
	again()
	if err := do(name, arguments...); err != nil {
		return err
	}
	if err := verify(name); err != nil {
		return err
	}
	h := abi.Handle(abi.RequestNull)
	again()
	nonblocking := "I" + string(name[0]+'a'-'A') + name[1:]
	if err := errors.Join(do(nonblocking, append(slices.Clone(arguments), &h)...), do("Wait", &h, nil)); err != nil {
		return err
	}
	if err := verify(nonblocking); err != nil {
		return err
	}
	if err := do(name+"_init", append(slices.Clone(arguments), abi.Handle(abi.InfoNull), &h)...); err != nil {
		return err
	}
	for range 2 {
		again()
		if err := errors.Join(do("Start", &h), do("Wait", &h, nil), verify(name+"_init")); err != nil {
			return err
		}
	}
	return do("Request_free", &h)
}

func allCollectives() error {
	all, err := shapes()
	if err != nil {
		return err
	}
	for i := range all {
		for j := range all {
			// one side may have other elements than the other: as many cells in all
			from, to := &all[i], &all[j]
			n, m := 2*len(to.cells), 2*len(from.cells)
			if err := moveAll(from, n, to, m); err != nil {
				return fmt.Errorf("from %s to %s: %w", from.name, to.name, err)
			}
		}
		if err := inPlaceAll(&all[i]); err != nil {
			return fmt.Errorf("%s in place: %w", all[i].name, err)
		}
	}
	return nil
}

// A mover runs one collective from n elements of a shape to m of another.
type mover struct {
	from, to *shape
	n, m     int
	size, me int
}

func (v *mover) cells() int { return v.n * len(v.from.cells) }

// gaps counts elements between blocks of the forms with displacements.
const gaps = 1

func moveAll(from *shape, n int, to *shape, m int) error {
	v := &mover{from, to, n, m, comms.World.P2P.Size(), comms.World.P2P.Rank()}
	for _, f := range []func() error{v.bcast, v.gather, v.scatter, v.allgather, v.alltoall, v.vectors} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func (v *mover) bcast() error {
	for root := range v.size {
		s, n := v.to, v.m
		if v.me == root {
			s, n = v.from, v.n
		}
		b, at := s.room(n)
		want := slices.Clone(b)
		s.put(want, at, 0, values(root, 0, v.cells()))
		again := func() {
			for i := range b {
				b[i] = gap
			}
			if v.me == root {
				copy(b, want)
			}
		}
		if err := three("Bcast", []any{addr(b[at:]), n, s.handle, root, world0}, again,
			func(form string) error { return same(form, b, want) }); err != nil {
			return err
		}
	}
	return nil
}

// sent returns a buffer with this rank's blocks for ranks.
func (v *mover) sent(blocks int) ([]int32, int) {
	b, at := v.from.room(v.n * blocks)
	for r := range blocks {
		v.from.put(b, at, r*v.n, values(v.me, r, v.cells()))
	}
	return b, at
}

// received returns a buffer and what it is to have: block r of rank r for to.
func (v *mover) received(to int) (b, want []int32, at int) {
	b, at = v.to.room(v.m * v.size)
	want = slices.Clone(b)
	for r := range v.size {
		v.to.put(want, at, r*v.m, values(r, to, v.cells()))
	}
	return b, want, at
}

// into returns the functions of three for a buffer that is to become want.
func into(b, want []int32) (again func(), verify func(string) error) {
	before := slices.Clone(b)
	return func() { copy(b, before) }, func(form string) error { return same(form, b, want) }
}

func (v *mover) gather() error {
	for root := range v.size {
		s, sat := v.sent(1)
		b, want, at := v.received(0)
		if v.me != root {
			want = slices.Clone(b)
		}
		again, verify := into(b, want)
		if err := three("Gather", []any{addr(s[sat:]), v.n, v.from.handle, addr(b[at:]), v.m, v.to.handle, root,
			world0}, again, verify); err != nil {
			return err
		}
	}
	return nil
}

func (v *mover) scatter() error {
	for root := range v.size {
		s, sat := v.sent(v.size)
		b, at := v.to.room(v.m)
		want := slices.Clone(b)
		v.to.put(want, at, 0, values(root, v.me, v.cells()))
		again, verify := into(b, want)
		if err := three("Scatter", []any{addr(s[sat:]), v.n, v.from.handle, addr(b[at:]), v.m, v.to.handle, root,
			world0}, again, verify); err != nil {
			return err
		}
	}
	return nil
}

func (v *mover) allgather() error {
	s, sat := v.sent(1)
	b, want, at := v.received(0)
	again, verify := into(b, want)
	return three("Allgather", []any{addr(s[sat:]), v.n, v.from.handle, addr(b[at:]), v.m, v.to.handle, world0},
		again, verify)
}

func (v *mover) alltoall() error {
	s, sat := v.sent(v.size)
	b, want, at := v.received(v.me)
	again, verify := into(b, want)
	return three("Alltoall", []any{addr(s[sat:]), v.n, v.from.handle, addr(b[at:]), v.m, v.to.handle, world0},
		again, verify)
}

// spaced returns counts and displacements of blocks with gaps between them, in the other order.
func (v *mover) spaced(each int) (counts, displs abi.Array, places []int) {
	all := make([]int, v.size)
	for r := range all {
		places = append(places, (v.size-1-r)*(each+gaps))
		all[r] = each
	}
	return array(all...), array(places...), places
}

func (v *mover) vectors() error {
	s, sat := v.sent(1)
	counts, displs, places := v.spaced(v.m)
	room := func(to int) (b, want []int32, at int) {
		b, at = v.to.room((v.m + gaps) * v.size)
		want = slices.Clone(b)
		for r := range v.size {
			v.to.put(want, at, places[r], values(r, to, v.cells()))
		}
		return b, want, at
	}
	b, want, at := room(0)
	again, verify := into(b, want)
	if err := three("Allgatherv", []any{addr(s[sat:]), v.n, v.from.handle, addr(b[at:]), counts, displs, v.to.handle,
		world0}, again, verify); err != nil {
		return err
	}
	if err := v.gatherv(room); err != nil {
		return err
	}
	from, fromCounts, fromDispls, fat := v.spread()
	b, want, at = room(v.me)
	again, verify = into(b, want)
	if err := three("Alltoallv", []any{addr(from[fat:]), fromCounts, fromDispls, v.from.handle, addr(b[at:]), counts,
		displs, v.to.handle, world0}, again, verify); err != nil {
		return err
	}
	if err := v.alltoallw(from, fat, b, want, at, places); err != nil {
		return err
	}
	return v.scatterv(from, fat, fromCounts, fromDispls)
}

func (v *mover) gatherv(room func(to int) (b, want []int32, at int)) error {
	counts, displs, _ := v.spaced(v.m)
	for root := range v.size {
		s, sat := v.sent(1)
		b, want, at := room(0)
		if v.me != root {
			want = slices.Clone(b)
		}
		again, verify := into(b, want)
		if err := three("Gatherv", []any{addr(s[sat:]), v.n, v.from.handle, addr(b[at:]), counts, displs, v.to.handle,
			root, world0}, again, verify); err != nil {
			return err
		}
	}
	return nil
}

// spread returns this rank's blocks for all, with gaps between them.
func (v *mover) spread() (b []int32, counts, displs abi.Array, at int) {
	counts, displs, places := v.spaced(v.n)
	b, at = v.from.room((v.n + gaps) * v.size)
	for r := range v.size {
		v.from.put(b, at, places[r], values(v.me, r, v.cells()))
	}
	return b, counts, displs, at
}

func (v *mover) scatterv(from []int32, fat int, counts, displs abi.Array) error {
	for root := range v.size {
		b, at := v.to.room(v.m)
		want := slices.Clone(b)
		v.to.put(want, at, 0, values(root, v.me, v.cells()))
		again, verify := into(b, want)
		if err := three("Scatterv", []any{addr(from[fat:]), counts, displs, v.from.handle, addr(b[at:]), v.m,
			v.to.handle, root, world0}, again, verify); err != nil {
			return err
		}
	}
	return nil
}

func (v *mover) alltoallw(from []int32, fat int, b, want []int32, at int, places []int) error {
	sendTypes, recvTypes := make([]abi.Handle, v.size), make([]abi.Handle, v.size)
	sendCounts, sendBytes, recvCounts, recvBytes := make([]int, v.size), make([]int, v.size), make([]int, v.size),
		make([]int, v.size)
	_, _, sendPlaces := v.spaced(v.n)
	for r := range v.size {
		sendTypes[r], recvTypes[r] = v.from.handle, v.to.handle
		sendCounts[r], sendBytes[r] = v.n, 4*v.from.extent*sendPlaces[r]
		recvCounts[r], recvBytes[r] = v.m, 4*v.to.extent*places[r]
	}
	again, verify := into(b, want)
	return three("Alltoallw", []any{addr(from[fat:]), array(sendCounts...), array(sendBytes...), sendTypes,
		addr(b[at:]), array(recvCounts...), array(recvBytes...), recvTypes, world0}, func() {
		for i := range b {
			b[i] = gap
		}
		again()
	}, verify)
}

// inPlaceAll runs the forms with MPI_IN_PLACE.
func inPlaceAll(s *shape) error {
	v := &mover{s, s, 2, 2, comms.World.P2P.Size(), comms.World.P2P.Rank()}
	b, want, at := v.received(0)
	s.put(b, at, v.me*v.n, values(v.me, 0, v.cells()))
	again, verify := into(b, want)
	if err := three("Allgather", []any{abi.InPlace, 0, s.handle, addr(b[at:]), v.m, s.handle, world0}, again,
		verify); err != nil {
		return err
	}
	sent, sat := v.sent(v.size)
	_, want, _ = v.received(v.me)
	again, verify = into(sent, want)
	if err := three("Alltoall", []any{abi.InPlace, 0, s.handle, addr(sent[sat:]), v.m, s.handle, world0}, again,
		verify); err != nil {
		return err
	}
	return v.rootedInPlace()
}

func (v *mover) rootedInPlace() error {
	for root := range v.size {
		own, oat := v.sent(1)
		b, want, at := v.received(0)
		sendbuf := addr(own[oat:])
		if v.me == root {
			v.to.put(b, at, v.me*v.m, values(v.me, 0, v.cells()))
			sendbuf = abi.InPlace
		} else {
			want = slices.Clone(b)
		}
		again, verify := into(b, want)
		if err := three("Gather", []any{sendbuf, v.n, v.from.handle, addr(b[at:]), v.m, v.to.handle, root, world0},
			again, verify); err != nil {
			return err
		}
		s, sat := v.sent(v.size)
		got, gat := v.to.room(v.m)
		expect := slices.Clone(got)
		recvbuf := addr(got[gat:])
		if v.me == root {
			recvbuf = abi.InPlace
		} else {
			v.to.put(expect, gat, 0, values(root, v.me, v.cells()))
		}
		again, verify = into(got, expect)
		if err := three("Scatter", []any{addr(s[sat:]), v.n, v.from.handle, recvbuf, v.m, v.to.handle, root, world0},
			again, verify); err != nil {
			return err
		}
	}
	return nil
}

// TestBlocksLieBetweenOthers: the blocks to send may lie between the blocks to receive, on some
// ranks alone.
func TestBlocksLieBetweenOthers(t *testing.T) { ranks(t, 3, "between") }

func allBetween() error {
	me, size := comms.World.P2P.Rank(), comms.World.P2P.Size()
	one, at := make([]int32, 6*size), 0
	var ones, outs, ins []int
	for r := range size {
		ones, outs, ins = append(ones, 1), append(outs, 2*r), append(ins, 2*r+1)
	}
	if me > 0 { // the blocks to receive lie behind the others
		at = 4 * size
	}
	out, in := addr(one), addr(one[at:])
	again := func() {
		for i := range one {
			one[i] = gap
		}
		for r, i := range outs {
			one[i] = int32(value(me, r, 0))
		}
	}
	got := func(places []int, want func(r int) int) func(string) error {
		return func(form string) (err error) {
			for r, i := range places {
				err = errors.Join(err, wants(form, &one[at+i], int32(want(r))))
			}
			return err
		}
	}
	fromAll := got(ins, func(r int) int { return value(r, 0, 0) })
	if me > 0 {
		fromAll = got(nil, nil)
	}
	return errors.Join(
		three("Alltoallv", []any{out, array(ones...), array(outs...), intHandle, in, array(ones...), array(ins...),
			intHandle, world0},
			again, got(ins, func(r int) int { return value(r, me, 0) })),
		three("Allgatherv", []any{out, 1, intHandle, in, array(ones...), array(ins...), intHandle, world0}, again,
			got(ins, func(r int) int { return value(r, 0, 0) })),
		three("Gatherv", []any{out, 1, intHandle, in, array(ones...), array(ins...), intHandle, 0, world0},
			again, fromAll),
		three("Scatterv", []any{out, array(ones...), array(outs...), intHandle, addr(one[at+1:]), 1,
			intHandle, 0, world0},
			again, got([]int{1}, func(int) int { return value(0, me, 0) })))
}
