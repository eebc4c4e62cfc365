package mpi

import (
	"errors"
	"fmt"
	"testing"

	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/errs"
)

func init() {
	jobs["sizes"] = allSizes
	jobs["unused"] = allUnused
	jobs["mistakes"] = allMistakes
}

// TestSizesTooLarge: what a program gives as a size, a count or a place reaches no allocation and
// no memory before it is checked.
func TestSizesTooLarge(t *testing.T) {
	for _, transport := range []string{"", "tcp"} {
		for _, n := range []int{1, 2} {
			t.Run(fmt.Sprint(n, transport), func(t *testing.T) {
				t.Parallel()
				ranks(t, n, "sizes", "GOMPI_TRANSPORT="+transport)
			})
		}
	}
}

func allSizes() error {
	const huge, many = 1 << 62, 100_000_000
	var g, h, w, wide abi.Handle
	at := abi.Handle(0)
	b, size := make([]int32, 64), 0
	err := errors.Join(
		do("Comm_group", world0, &g), do("Group_size", g, &size),
		do("Type_vector", 2, 1, 1<<40, intHandle, &wide), do("Type_commit", &wide),
		do("Win_create", addr(b), 4*len(b), 4, abi.Handle(abi.InfoNull), world0, &w), do("Win_lock_all", 0, w))
	if err != nil {
		return err
	}
	null := abi.Handle(abi.InfoNull)
	for what, r := range map[string]struct {
		err  error
		want abi.Class
	}{
		"a range that ends outside": {do("Group_range_incl", g, 1, array(0, many, 1), &h), errs.Rank},
		"a range that ends below":   {do("Group_range_excl", g, 1, array(0, -many, -1), &h), errs.Rank},
		"ranges with a rank twice":  {do("Group_range_incl", g, 2, array(0, size-1, 1, 0, 0, 1), &h), errs.Rank},
		"more ranks than there are": {do("Group_incl", g, many, array(0), &h), errs.Rank},
		"ranks that are NULL":       {do("Group_excl", g, 1, 0, &h), errs.Arg},
		"ranges that are NULL":      {do("Group_range_incl", g, many, 0, &h), errs.Arg},
		"dimensions that wrap": {do("Cart_create", world0, 4, array(1<<16, 1<<16, 1<<16, 1<<16),
			array(0, 0, 0, 0), 0, &h), errs.Dims},
		"the same in a map": {do("Cart_map", world0, 4, array(1<<16, 1<<16, 1<<16, 1<<16),
			array(0, 0, 0, 0), &h), errs.Dims},
		"dimensions that are NULL": {do("Cart_create", world0, many, 0, 0, 0, &h), errs.Dims},
		"edges that are NULL":      {do("Graph_create", world0, 1, array(many), 0, 0, &h), errs.Arg},
		"neighbors that are NULL": {do("Dist_graph_create_adjacent", world0, many, 0, 0, 0, 0, 0, null, 0,
			&h), errs.Arg},
		"degrees that are NULL":      {do("Dist_graph_create", world0, many, 0, 0, 0, 0, null, 0, &h), errs.Arg},
		"blocks that are NULL":       {do("Type_create_hindexed", many, 0, 0, intHandle, &h), errs.Arg},
		"a message that wraps":       {do("Send", addr(b), huge, intHandle, 0, 0, world0), errs.Count},
		"a message that reaches far": {do("Send", addr(b), 1<<30, wide, 0, 0, world0), errs.Count},
		"blocks that wrap": {do("Allgather", addr(b), 1, intHandle, addr(b), huge, intHandle, world0),
			errs.Count},
		"blocks of all that wrap": {do("Alltoall", addr(b), huge/4/size+1, intHandle, addr(b), huge/4/size+1,
			intHandle, world0), errs.Count},
		"a part of a result that wraps": {do("Reduce_scatter_block", addr(b), addr(b), huge, intHandle, sumHandle,
			world0), errs.Count},
		"memory of a window":            {do("Win_allocate", huge, 1, null, world0, &at, &h), errs.NoMem},
		"memory of all of a window":     {do("Win_allocate_shared", huge, 1, null, world0, &at, &h), errs.NoMem},
		"a place that wraps":            {do("Put", addr(b), 1, intHandle, 0, huge, 1, intHandle, w), errs.RMARange},
		"a place below that wraps":      {do("Get", addr(b), 1, intHandle, 0, -huge, 1, intHandle, w), errs.RMARange},
		"elements at a place that wrap": {do("Put", addr(b), 1, intHandle, 0, 0, huge, intHandle, w), errs.Count},
	} {
		if c := errs.ClassOf(r.err); c != r.want {
			err = errors.Join(err, fmt.Errorf("%s: %v, class %d: want class %d", what, r.err, c, r.want))
		}
	}
	return errors.Join(err, do("Win_unlock_all", w), do("Win_free", &w), do("Group_free", &g), do("Type_free", &wide))
}

// TestUnusedDatatypes: no elements may be of MPI_DATATYPE_NULL where MPICH lets them.
func TestUnusedDatatypes(t *testing.T) { ranks(t, 2, "unused") }

func allUnused() error {
	const none = abi.Handle(abi.DatatypeNull)
	me, size := comms.World.P2P.Rank(), comms.World.P2P.Size()
	peer := 1 - me
	b, in, out := abi.Addr(0), []int32{-1}, []int32{int32(me)}
	var m, grid abi.Handle
	hs := make([]abi.Handle, 2)
	var st abi.Status
	counts, displs, types := make([]int, size), array(0, 0), []abi.Handle{none, none}
	counts[peer], types[peer] = 1, intHandle
	send := []any{addr(out), array(counts...), displs, types, addr(in), array(counts...), displs, types, world0}
	zeros, at, nulls := array(0, 0), addr(make([]int64, 2)), []abi.Handle{none, none}
	err := errors.Join(
		do("Isend", b, 0, none, peer, 1, world0, &hs[0]), do("Irecv", b, 0, none, peer, 1, world0, &hs[1]),
		do("Waitall", 2, hs, nil),
		do("Send_init", b, 0, none, peer, 2, world0, &hs[0]), do("Recv_init", b, 0, none, peer, 2, world0, &hs[1]),
		do("Startall", 2, hs), do("Waitall", 2, hs, nil), do("Request_free", &hs[0]), do("Request_free", &hs[1]),
		do("Sendrecv", b, 0, none, peer, 3, b, 0, none, peer, 3, world0, &st),
		do("Sendrecv_replace", b, 0, none, peer, 3, peer, 3, world0, &st),
		do("Isend", b, 0, none, peer, 4, world0, &hs[0]), do("Mprobe", peer, 4, world0, &m, &st),
		do("Mrecv", b, 0, none, &m, &st), do("Wait", &hs[0], nil),
		three("Alltoallw", send, func() { in[0] = -1 },
			func(form string) error { return wants(form, &in[0], int32(peer)) }),
		do("Cart_create", world0, 1, array(size), array(1), 0, &grid),
		do("Neighbor_alltoallw", b, zeros, at, nulls, b, zeros, at, nulls, grid),
		do("Neighbor_alltoall", b, 0, none, b, 0, none, grid),
		do("Neighbor_allgather", b, 0, none, b, 0, none, grid), do("Comm_free", &grid))
	if c := errs.ClassOf(do("Sendrecv", b, 1, none, peer, 3, b, 0, none, peer, 3, world0, &st)); c != errs.Type {
		err = errors.Join(err, fmt.Errorf("an element of MPI_DATATYPE_NULL: class %d", c))
	}
	return err
}

// TestTheFirstOfTwoMistakes: a collective with two wrong arguments has the error of the one that it
// checks first.
func TestTheFirstOfTwoMistakes(t *testing.T) { ranks(t, 1, "mistakes") }

func allMistakes() error {
	const none, no, large = abi.Handle(abi.DatatypeNull), abi.Handle(abi.OpNull), 1 << 60
	b, one, negative := addr(make([]int32, 8)), array(1), array(-1)
	var grid abi.Handle
	var size int
	err := do("Cart_create", world0, 1, array(1), array(1), 0, &grid)
	for what, r := range map[string]struct {
		err  error
		want abi.Class
	}{
		"root, then type":            {do("Bcast", b, 1, none, 1, world0), errs.Root},
		"count, then operator":       {do("Allreduce", b, b, -1, intHandle, no, world0), errs.Count},
		"count of a form, then type": {do("Pack_external_size", text("external32"), -1, none, &size), errs.Count},
		"handler of no communicator": {do("Comm_call_errhandler", abi.Handle(abi.CommNull), 1), errs.Comm},
		"buffer of no session":       {do("Session_flush_buffer", abi.Handle(abi.SessionNull)), errs.Session},
		"received, then sent":        {do("Allgather", b, -1, intHandle, b, 1, none, world0), errs.Type},
		"received, then sent by all": {do("Alltoall", b, -1, intHandle, b, 1, none, world0), errs.Type},
		"sent counts, then received": {do("Alltoallv", b, negative, one, intHandle, b, one, one, none, world0),
			errs.Count},
		"the root's, then a block":       {do("Scatter", b, 1, none, b, -1, intHandle, 0, world0), errs.Type},
		"in place at the root":           {do("Gather", abi.InPlace, -1, none, b, 1, intHandle, 0, world0), 0},
		"sent to neighbors, then theirs": {do("Neighbor_alltoall", b, 1, none, b, -1, intHandle, grid), errs.Type},
		"types of neighbors, then more": {do("Neighbor_alltoallv", b, array(-1, 1), array(0, 0), intHandle, b,
			array(1, 1), array(0, 0), none, grid), errs.Type},
		"blocks of neighbors that wrap": {do("Neighbor_allgather", b, 1, intHandle, b, large/2, intHandle, grid),
			errs.Count},
	} {
		if c := errs.ClassOf(r.err); c != r.want {
			err = errors.Join(err, fmt.Errorf("%s: %v, class %d: want class %d", what, r.err, c, r.want))
		}
	}
	return errors.Join(err, do("Comm_free", &grid))
}
