package mpi

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"gompi/internal/core/call"
	"gompi/internal/mem"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
)

func init() {
	jobs["intercommunicators"] = allIntercommunicators
	jobs["intercommunicators at once"] = intercommunicatorsAtOnce
	jobs["intercommunicators beside"] = besideNonblocking
	jobs["intercommunicators mistaken"] = mistakenCalls
	jobs["intercommunicators mistaken within groups"] = mistakenReductions
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
				err = c.Inter.Both.Do(comms.Forever, new(call.Call).Bcast(0, mem.Of([]int64{0, int64(i)}[:1+i%2])))
			}
			ended <- err
		}()
	}
	var failed []error
	for range threads {
		failed = append(failed, <-ended)
	}
	return errors.Join(failed...)
}

// TestCallsBesideNonblockingOnes: a collective of several steps has begun when the program makes or
// frees a communicator.
func TestCallsBesideNonblockingOnes(t *testing.T) {
	for _, n := range []int{2, 4} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			ranks(t, n, "intercommunicators beside")
		})
	}
}

func besideNonblocking() error {
	var made abi.Handle
	var r abi.Handle
	var failed []error
	for _, other := range []func(s *side) error{
		func(s *side) error { return do("Intercomm_merge", s.c, 0, &made) },
		func(s *side) error { return do("Comm_split", s.c, 0, s.me, &made) },
		func(s *side) error {
			var g abi.Handle
			return errors.Join(do("Comm_group", s.c, &g), do("Comm_create", s.c, g, &made), do("Group_free", &g))
		},
		func(s *side) error { return do("Comm_dup", s.c, &made) },
		func(s *side) error { made = s.c; return nil },
		func(s *side) error {
			return errors.Join(do("Comm_idup", s.c, &made, &r), do("Comm_free", &s.c), do("Wait", &r, nil))
		},
	} {
		if err := beside(other, &made); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// beside starts two collectives and an agreement, which the odd ranks begin when the even ones go
// on, and waits for them when what other has made is freed.
func beside(other func(*side) error, made *abi.Handle) error {
	s, err := makeSide()
	if err != nil {
		return err
	}
	in, word := [2][]int32{}, []int32{int32(s.localWorld(s.me))}
	requests, flag := []abi.Handle{abi.RequestNull, abi.RequestNull, abi.RequestNull}, []int32{5}
	if s.odd == 1 {
		err = do("Recv", addr(word), 0, intHandle, s.localWorld(s.me)-1, 4, world0, nil)
	}
	for i := range in {
		in[i] = make([]int32, s.remote)
		err = errors.Join(err, do("Iallgather", addr(word), 1, intHandle, addr(in[i]), 1, intHandle, s.c, &requests[i]))
	}
	err = errors.Join(err, do("Comm_iagree", s.c, flag, &requests[2]))
	if s.odd == 0 {
		err = errors.Join(err, do("Send", addr(word), 0, intHandle, s.localWorld(s.me)+1, 4, world0))
	}
	err = errors.Join(err, other(s), do("Comm_free", made), do("Waitall", len(requests), requests, nil),
		wants("flag", &flag[0], 5))
	for i := range in {
		for j, got := range in[i] {
			err = errors.Join(err, wants("word", &got, int32(s.world(j))))
		}
	}
	if c := comms.Registry.Find(s.c); c != nil && !c.Freed() {
		err = errors.Join(err, do("Comm_free", &s.c))
	}
	return err
}

// TestMistakenCallsOfIntercommunicators: errors name the functions that ranks have called.
func TestMistakenCallsOfIntercommunicators(t *testing.T) {
	ranks(t, 2, "intercommunicators mistaken")
	ranks(t, 4, "intercommunicators mistaken within groups")
}

func mistakenCalls() error {
	calls := map[string]func(s *side, made *abi.Handle) error{
		"MPI_Intercomm_merge": func(s *side, made *abi.Handle) error { return do("Intercomm_merge", s.c, 0, made) },
		"MPI_Comm_split":      func(s *side, made *abi.Handle) error { return do("Comm_split", s.c, 0, s.me, made) },
		"MPI_Comm_dup":        func(s *side, made *abi.Handle) error { return do("Comm_dup", s.c, made) },
		"MPI_Barrier_init":    func(s *side, made *abi.Handle) error { return do("Barrier_init", s.c, noInfo, made) },
		"MPI_Barrier":         func(s *side, made *abi.Handle) error { return do("Barrier", s.c) },
		"MPI_Bcast": func(s *side, made *abi.Handle) error {
			return do("Bcast", 0, 0, intHandle, s.root(), s.c)
		},
		"MPI_Gather": func(s *side, made *abi.Handle) error {
			return do("Gather", 0, 0, intHandle, 0, 0, intHandle, s.root(), s.c)
		},
	}
	names := slices.Sorted(maps.Keys(calls))
	for i := range names {
		s, err := makeSide()
		if err != nil {
			return err
		}
		of := func(odd int) string { return names[(i+odd)%len(names)] }
		var made abi.Handle
		err = calls[of(s.odd)](s, &made)
		if err := namesBoth(err, of(0)+"()", of(1)+"()"); err != nil {
			return err
		}
	}
	return nil
}

// mistakenReductions has the two ranks of each group call different reductions, which begin with
// one within the group.
func mistakenReductions() error {
	in, out := make([]int32, 4), make([]int32, 4)
	calls := []struct {
		text string
		do   func(s *side) error
	}{
		{"MPI_Allreduce(1 MPI_INT, MPI_SUM)",
			func(s *side) error { return do("Allreduce", addr(in), addr(out), 1, intHandle, sumHandle, s.c) }},
		{"MPI_Allreduce(3 MPI_INT, MPI_SUM)",
			func(s *side) error { return do("Allreduce", addr(in), addr(out), 3, intHandle, sumHandle, s.c) }},
		{"MPI_Reduce(1 MPI_INT, MPI_SUM)", func(s *side) error {
			return do("Reduce", addr(in), addr(out), 1, intHandle, sumHandle, 0, s.c)
		}},
		{"MPI_Reduce_scatter_block(4 MPI_INT, MPI_SUM)", func(s *side) error {
			return do("Reduce_scatter_block", addr(in), addr(out), 2, intHandle, sumHandle, s.c)
		}},
		{"MPI_Reduce_scatter(4 MPI_INT, MPI_SUM)", func(s *side) error {
			return do("Reduce_scatter", addr(in), addr(out), []int32{2, 2}, intHandle, sumHandle, s.c)
		}},
	}
	for i := range calls {
		s, err := makeSide()
		if err != nil {
			return err
		}
		other := &calls[(i+1)%len(calls)]
		mine := []func(*side) error{calls[i].do, other.do}[s.me]
		if err := namesBoth(mine(s), calls[i].text, other.text); err != nil {
			return err
		}
	}
	return nil
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
	if err := errors.Join(s.messages(), s.collectives(), s.reductions(), s.merge(),
		do("Comm_dup", s.c, &d)); err != nil {
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
	if err := three("Allgather", []any{addr(out), 1, intHandle, addr(in), 1, intHandle, s.c}, again,
		check); err != nil {
		return err
	}
	blocks := slices.Repeat(out, s.remote)
	if err := three("Alltoall", []any{addr(blocks), 1, intHandle, addr(in), 1, intHandle, s.c}, again,
		check); err != nil {
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
		do("Comm_free", &m), wants("handle", &m, abi.Handle(abi.CommNull)))
}
