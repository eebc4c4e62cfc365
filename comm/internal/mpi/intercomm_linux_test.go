package mpi

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"gompi/comm"
	"gompi/comm/internal/mpi/abi"
	"gompi/comm/internal/mpi/comms"
	"gompi/comm/internal/mpi/table"
)

func init() {
	jobs["intercommunicators"] = allIntercommunicators
	jobs["intercommunicators at once"] = intercommunicatorsAtOnce
}

func TestIntercommunicators(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			ranks(t, n, "intercommunicators")
		})
	}
}

// TestIntercommunicatorsAtOnce: threads that make intercommunicators of the same groups at the same
// time, over communicators of their own, may give the same tag.
func TestIntercommunicatorsAtOnce(t *testing.T) { ranks(t, 4, "intercommunicators at once") }

func intercommunicatorsAtOnce() error {
	const threads = 8
	me := comms.World.P2P.Rank()
	var peers, halves [threads]*comms.Comm
	for i := range threads {
		var peer, half abi.Handle
		if err := errors.Join(do("Comm_dup", world0, &peer), do("Comm_split", peer, me%2, me, &half)); err != nil {
			return err
		}
		peers[i], halves[i] = comms.Registry.Find(peer), comms.Registry.Find(half)
	}
	ended := make(chan error, threads)
	for i := range threads {
		go func() {
			c, err := comms.IntercommCreate(halves[i], 0, peers[i], 1-me%2, 5)
			if err == nil {
				err = c.Inter.Both.Bcast(comms.Forever, 0, comm.Of([]int64{0, int64(i)}[:1+i%2]))
			}
			ended <- err
		}()
	}
	var errs []error
	for range threads {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// A side is one group of an intercommunicator of the odd and the even ranks of the world.
type side struct {
	c          abi.Handle
	me         int // in the local group
	local      int // ranks
	remote     int
	odd        int // 1 in the odd group
	localWorld func(i int) int
	world      func(i int) int // of the remote group's rank i
}

func allIntercommunicators() error {
	s, err := makeSide()
	if err != nil {
		return err
	}
	var d abi.Handle
	if err := errors.Join(s.messages(), s.collectives(), s.reductions(), s.merge(), do("Comm_dup", s.c, &d)); err != nil {
		return err
	}
	own := s.c
	s.c = d
	return errors.Join(s.collectives(), do("Comm_free", &d), do("Comm_free", &own))
}

func makeSide() (*side, error) {
	me, size := comms.World.P2P.Rank(), comms.World.P2P.Size()
	s := &side{odd: me % 2, me: me / 2}
	counts := []int{(size + 1) / 2, size / 2}
	s.local, s.remote = counts[s.odd], counts[1-s.odd]
	s.localWorld = func(i int) int { return 2*i + s.odd }
	s.world = func(i int) int { return 2*i + 1 - s.odd }
	var half abi.Handle
	flag, n := 0, 0
	return s, errors.Join(
		do("Comm_split", world0, s.odd, me, &half),
		do("Intercomm_create", half, 0, world0, 1-s.odd, 5, &s.c), do("Comm_free", &half),
		do("Comm_test_inter", s.c, &flag), wants("flag", &flag, 1),
		do("Comm_size", s.c, &n), wants("size", &n, s.local),
		do("Comm_rank", s.c, &n), wants("rank", &n, s.me),
		do("Comm_remote_size", s.c, &n), wants("remote size", &n, s.remote))
}

// messages go to ranks of the other group.
func (s *side) messages() error {
	if s.me >= s.remote {
		return nil
	}
	in, out := make([]int32, 1), []int32{int32(s.localWorld(s.me))}
	var st abi.Status
	return errors.Join(
		do("Sendrecv", addr(out), 1, intHandle, s.me, 8, addr(in), 1, intHandle, abi.AnySource, 8, s.c, &st),
		wants("message", &in[0], int32(s.world(s.me))), wants("source", &st.Source, int32(s.me)))
}

func (s *side) collectives() error {
	in, out := make([]int32, s.remote), []int32{int32(s.localWorld(s.me))}
	want := make([]int32, s.remote)
	for i := range want {
		want[i] = int32(s.world(i))
	}
	empty := make([]int32, s.remote)
	check := func(form string) error { return same(form, in, want) }
	again := func() { copy(in, empty) }
	if err := three("Allgather", []any{addr(out), 1, intHandle, addr(in), 1, intHandle, s.c}, again, check); err != nil {
		return err
	}
	blocks := slices.Repeat(out, s.remote)
	if err := three("Alltoall", []any{addr(blocks), 1, intHandle, addr(in), 1, intHandle, s.c}, again, check); err != nil {
		return err
	}
	return errors.Join(s.rooted(), three("Barrier", []any{s.c}, func() {}, func(string) error { return nil }))
}

// root returns what a rank gives for the root, which is rank 0 of the odd group.
func (s *side) root() int {
	switch {
	case s.odd == 0:
		return 0
	case s.me == 0:
		return abi.RootHere
	}
	return abi.ProcNull
}

func (s *side) rooted() error {
	b, all := make([]int32, 1), make([]int32, s.remote)
	isRoot, root := s.root() == abi.RootHere, s.root()
	err := three("Bcast", []any{addr(b), 1, intHandle, root, s.c}, func() {
		b[0] = 0
		if isRoot {
			b[0] = 42
		}
	}, func(form string) error {
		if isRoot || s.odd == 0 {
			return wants(form, &b[0], 42)
		}
		return wants(form, &b[0], 0)
	})
	if err != nil {
		return err
	}
	b[0] = int32(s.localWorld(s.me))
	want := make([]int32, s.remote)
	if isRoot {
		for i := range want {
			want[i] = int32(s.world(i))
		}
	}
	return three("Gather", []any{addr(b), 1, intHandle, addr(all), 1, intHandle, root, s.c}, func() { clear(all) },
		func(form string) error { return same(form, all, want) })
}

// reductions give each group what the other combines.
func (s *side) reductions() error {
	in, out := []int32{int32(s.localWorld(s.me)), 1}, make([]int32, 2)
	want := []int32{0, int32(s.remote)}
	for i := range s.remote {
		want[0] += int32(s.world(i))
	}
	if err := three("Allreduce", []any{addr(in), addr(out), 2, intHandle, sumHandle, s.c}, func() { clear(out) },
		func(form string) error { return same(form, out, want) }); err != nil {
		return err
	}
	if s.root() != abi.RootHere {
		want = []int32{0, 0}
	}
	return three("Reduce", []any{addr(in), addr(out), 2, intHandle, sumHandle, s.root(), s.c}, func() { clear(out) },
		func(form string) error { return same(form, out, want) })
}

// merge puts the even ranks first, whichever group says high.
func (s *side) merge() error {
	var m abi.Handle
	rank := 0
	want := s.me
	if s.odd == 1 {
		want += s.remote
	}
	return errors.Join(do("Intercomm_merge", s.c, s.odd, &m), do("Comm_rank", m, &rank), wants("rank", &rank, want),
		do("Comm_free", &m), wants("handle", &m, abi.Handle(table.CommNull)))
}
