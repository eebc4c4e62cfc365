package mpi

import (
	"errors"
	"fmt"
	"testing"

	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
)

func init() { jobs["duplicates"] = allDuplicates }

func TestDuplicatesAndOrdersOfStarts(t *testing.T) {
	for _, n := range []int{2, 4} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			ranks(t, n, "duplicates")
		})
	}
}

func allDuplicates() error {
	s, err := makeSide()
	if err != nil {
		return err
	}
	return errors.Join(idupDoesNotWait(world0), idupAmongCollectives(world0), idupAmongCollectives(s.c),
		persistentOrders(), persistentOrdersAcross(s), do("Comm_free", &s.c), topologiesAreCopied())
}

// topologiesAreCopied duplicates a ring of all ranks, as a grid and as a graph, and frees it: the
// duplicate has the neighbors, and so has a part of it.
func topologiesAreCopied() error {
	me, size := comms.World.P2P.Rank(), comms.World.P2P.Size()
	before, behind := (me+size-1)%size, (me+1)%size
	index, edges := make([]int, size), []int(nil)
	for r := range size {
		index[r] = 2 * (r + 1)
		edges = append(edges, (r+size-1)%size, (r+1)%size)
	}
	both := array(before, behind)
	return errors.Join(
		copied("a grid", func(c *abi.Handle) error {
			return do("Cart_create", world0, 1, array(size), array(1), 0, c)
		}),
		copied("a graph", func(c *abi.Handle) error {
			return do("Graph_create", world0, size, array(index...), array(edges...), 0, c)
		}),
		copied("a distributed graph", func(c *abi.Handle) error {
			return do("Dist_graph_create_adjacent", world0, 2, both, abi.Unweighted, 2, both, abi.Unweighted, nil, 0, c)
		}),
		copied("a row of a grid", func(c *abi.Handle) error {
			var plane, dup abi.Handle
			return errors.Join(do("Cart_create", world0, 2, array(1, size), array(0, 1), 0, &plane),
				do("Comm_dup", plane, &dup), do("Comm_free", &plane),
				do("Cart_sub", dup, array(0, 1), c), do("Comm_free", &dup))
		}))
}

// copied checks a duplicate of a duplicate of the ring that create makes.
func copied(what string, create func(c *abi.Handle) error) error {
	me, size := comms.World.P2P.Rank(), comms.World.P2P.Size()
	var c, dup, idup, r abi.Handle
	var st abi.Status
	err := errors.Join(create(&c), do("Comm_dup", c, &dup), do("Comm_idup", dup, &idup, &r), do("Wait", &r, &st),
		do("Comm_free", &c), do("Comm_free", &dup),
		hearsFrom(idup, (me+size-1)%size, (me+1)%size), do("Comm_free", &idup))
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// hearsFrom checks that two ranks are this one's neighbors in c.
func hearsFrom(c abi.Handle, before, behind int) error {
	me, got := []int32{int32(comms.World.P2P.Rank())}, make([]int32, 2)
	return errors.Join(do("Neighbor_allgather", addr(me), 1, intHandle, addr(got), 1, intHandle, c),
		wants("the neighbor before", &got[0], int32(before)), wants("the neighbor behind", &got[1], int32(behind)))
}

// idupDoesNotWait has rank 0 send what the others receive before they duplicate, too.
func idupDoesNotWait(c abi.Handle) error {
	me, size := comms.World.P2P.Rank(), comms.World.P2P.Size()
	word := make([]int32, 1)
	var d, r abi.Handle
	var err error
	if me == 0 {
		err = do("Comm_idup", c, &d, &r)
		for to := 1; to < size; to++ {
			err = errors.Join(err, do("Send", addr(word), 1, intHandle, to, 7, c))
		}
	} else {
		var st abi.Status
		err = errors.Join(do("Recv", addr(word), 1, intHandle, 0, 7, c, &st), do("Comm_idup", c, &d, &r))
	}
	var st abi.Status
	same := 0
	return errors.Join(err, do("Wait", &r, &st), do("Barrier", d),
		do("Comm_compare", c, d, &same), wants("comparison", &same, abi.Congruent), do("Comm_free", &d))
}

// idupAmongCollectives has duplicates made between collectives that are under way.
func idupAmongCollectives(c abi.Handle) error {
	rs, sts := make([]abi.Handle, 4), make([]abi.Status, 4)
	var d, e abi.Handle
	return errors.Join(
		do("Ibarrier", c, &rs[0]), do("Comm_idup", c, &d, &rs[1]), do("Ibarrier", c, &rs[2]),
		do("Comm_idup", c, &e, &rs[3]),
		do("Waitall", 4, rs, sts), do("Barrier", e), do("Barrier", d), do("Comm_free", &d), do("Comm_free", &e))
}

// persistentOrders starts persistent collectives in another order on odd ranks.
func persistentOrders() error {
	me, size := comms.World.P2P.Rank(), comms.World.P2P.Size()
	word, all := make([]int32, 1), make([]int32, size)
	rs := make([]abi.Handle, 3)
	err := errors.Join(
		do("Bcast_init", addr(word), 1, intHandle, 0, world0, nil, &rs[0]),
		do("Barrier_init", world0, nil, &rs[1]),
		do("Allgather_init", addr([]int32{int32(me)}), 1, intHandle, addr(all), 1, intHandle, world0, nil, &rs[2]))
	if err != nil {
		return err
	}
	return startedInTwoOrders(rs, func(round int32) {
		clear(all)
		if me == 0 {
			word[0] = round
		}
	}, func(round int32) error {
		return errors.Join(wants("word", &word[0], round), wants("last rank", &all[size-1], int32(size-1)))
	})
}

// persistentOrdersAcross is persistentOrders with the groups of an intercommunicator.
func persistentOrdersAcross(s *side) error {
	me := []int32{int32(s.me + 1)}
	all, sum := make([]int32, s.remote), make([]int32, 1)
	rs := make([]abi.Handle, 4)
	err := errors.Join(
		do("Allgather_init", addr(me), 1, intHandle, addr(all), 1, intHandle, s.c, nil, &rs[0]),
		do("Barrier_init", s.c, nil, &rs[1]),
		do("Allreduce_init", addr(me), addr(sum), 1, intHandle, sumHandle, s.c, nil, &rs[2]),
		do("Barrier_init", s.c, nil, &rs[3]))
	if err != nil {
		return err
	}
	n := int32(s.remote)
	return startedInTwoOrders(rs, func(int32) { clear(all); sum[0] = 0 }, func(int32) error {
		return errors.Join(wants("last rank", &all[n-1], n), wants("sum", &sum[0], n*(n+1)/2))
	})
}

// startedInTwoOrders starts requests in their order on even ranks, the last first on odd ones.
func startedInTwoOrders(rs []abi.Handle, before func(round int32), verify func(round int32) error) (err error) {
	for round := range int32(3) {
		before(round)
		for i := range rs {
			if comms.World.P2P.Rank()%2 == 1 {
				i = len(rs) - 1 - i
			}
			err = errors.Join(err, do("Start", &rs[i]))
		}
		err = errors.Join(err, do("Waitall", len(rs), rs, make([]abi.Status, len(rs))), verify(round))
	}
	for i := range rs {
		err = errors.Join(err, do("Request_free", &rs[i]))
	}
	return err
}

// What MPI allows before MPI_Init.
func TestInfosAndCodesWithoutInit(t *testing.T) {
	Use(testFace())
	var h, e, copied abi.Handle
	flag, code, class, n := 0, 0, 0, 0
	err := errors.Join(
		do("Info_create", &h), do("Info_set", h, text("key"), text("value")), do("Info_dup", h, &copied),
		do("Info_free", &h),
		do("Info_get_valuelen", copied, text("key"), &n, &flag), wants("flag", &flag, 1), wants("length", &n, 5),
		do("Info_free", &copied),
		do("Info_create_env", 0, nil, &e), do("Info_get_valuelen", e, text("thread_level"), &n, &flag),
		wants("flag", &flag, 1), do("Info_free", &e),
		do("Add_error_code", 2, &code), do("Error_class", code, &class), wants("class", &class, 2))
	if err != nil {
		t.Error(err)
	}
}
