package topology_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/topology"
)

type rankFunc = func(ctx context.Context, c *comm.Comm) error

// ranks runs fn on n ranks, in a bubble, where a deadlock fails the test at once.
func ranks(t *testing.T, n int, fn rankFunc) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { commtest.Run(t, n, fn) })
}

// shapes are grids: with dimensions of one rank, which is its own neighbor on both sides, and of
// two, where both neighbors are one rank.
var shapes = []struct {
	dims     []int
	periodic []bool
}{
	{[]int{1}, []bool{false}}, {[]int{1}, []bool{true}}, {[]int{2}, []bool{false}}, {[]int{2}, []bool{true}},
	{[]int{5}, []bool{true}}, {[]int{2, 3}, []bool{false, false}}, {[]int{2, 3}, []bool{true, false}},
	{[]int{1, 4}, []bool{true, true}}, {[]int{2, 2}, []bool{true, true}}, {[]int{2, 1, 3}, []bool{true, false, true}},
	{nil, nil},
}

// onGrids runs fn on a Cart of each shape.
func onGrids(t *testing.T, fn func(ctx context.Context, g *topology.Cart) error) {
	for _, s := range shapes {
		t.Run(fmt.Sprint(s.dims, s.periodic), func(t *testing.T) {
			n := 1
			for _, d := range s.dims {
				n *= d
			}
			ranks(t, n+1, func(ctx context.Context, c *comm.Comm) error { // one more than there are places
				g, err := topology.NewCart(ctx, c, s.dims, s.periodic)
				if (g == nil) != (c.Rank() == n) || err != nil {
					return fmt.Errorf("got %v, %v", g, err)
				}
				if g == nil {
					return nil
				}
				return errors.Join(fn(ctx, g), g.Close(ctx))
			})
		})
	}
}

// beside returns the rank beside this one for place i of a grid, by addition along the digits of
// the rank.
func beside(g *topology.Cart, i int) int {
	dims, periodic, dim := g.Dims(), g.Periodic(), i/2
	stride := 1
	for _, d := range dims[dim+1:] {
		stride *= d
	}
	x := g.Rank() / stride % dims[dim]
	to := x + 2*(i%2) - 1
	if to >= 0 && to < dims[dim] {
		return g.Rank() + (to-x)*stride
	}
	if !periodic[dim] {
		return comm.ProcNull
	}
	to = (to + dims[dim]) % dims[dim]
	return g.Rank() + (to-x)*stride
}

// sent is element k of a rank's message to its place i.
func sent(rank, i, k int) int { return 1000*rank + 10*i + k }

// untouched is the value of elements that nothing is received into.
const untouched = -1

// wantAt returns the n elements that arrive at place i: the neighbor has this rank at the other
// place of the dimension.
func wantAt(g *topology.Cart, i, n int) []int {
	want := slices.Repeat([]int{untouched}, n)
	if from := beside(g, i); from != comm.ProcNull {
		for k := range want {
			want[k] = sent(from, i^1, k)
		}
	}
	return want
}

// blocksOf returns this rank's messages, lengths[i] elements to place i, and room for the received
// ones.
func blocksOf(g *topology.Cart, lengths []int) (send, recv [][]int) {
	for i, n := range lengths {
		var b []int
		for k := range n {
			b = append(b, sent(g.Rank(), i, k))
		}
		send = append(send, b)
	}
	for i := range lengths {
		recv = append(recv, slices.Repeat([]int{untouched}, lengths[i^1]))
	}
	return send, recv
}

func buffers(all [][]int) (bs []comm.Buffer) {
	for _, b := range all {
		bs = append(bs, comm.Of(b))
	}
	return bs
}

// lengthsOf returns a length for each place, of which some are 0.
func lengthsOf(g *topology.Cart) (all []int) {
	for i := range 2 * len(g.Dims()) {
		all = append(all, (i+2)%4)
	}
	return all
}

func check(g *topology.Cart, name string, got [][]int) error {
	for i, b := range got {
		if want := wantAt(g, i, len(b)); !slices.Equal(b, want) {
			return fmt.Errorf("%s: place %d of rank %d has %v, want %v", name, i, g.Rank(), b, want)
		}
	}
	return nil
}

func TestNeighborsOfAGrid(t *testing.T) {
	onGrids(t, func(ctx context.Context, g *topology.Cart) error {
		var want []int
		for i := range 2 * len(g.Dims()) {
			want = append(want, beside(g, i))
		}
		if !slices.Equal(g.Sources(), want) || !slices.Equal(g.Destinations(), want) {
			return fmt.Errorf("rank %d: sources %v, destinations %v, want %v", g.Rank(), g.Sources(),
				g.Destinations(), want)
		}
		for dim := range g.Dims() {
			if from, to := g.Shift(dim, 1); from != want[2*dim] || to != want[2*dim+1] {
				return fmt.Errorf("rank %d: a shift in dimension %d is from %d to %d, want %v", g.Rank(), dim, from, to,
					want[2*dim:][:2])
			}
		}
		return nil
	})
}

func TestNeighborAlltoallsOfGrids(t *testing.T) {
	onGrids(t, func(ctx context.Context, g *topology.Cart) error {
		lengths := lengthsOf(g)
		for range 2 { // nothing is left behind for the next
			send, recv := blocksOf(g, lengths)
			if err := errors.Join(g.NeighborAlltoallw(ctx, buffers(send), buffers(recv)),
				check(g, "alltoallw", recv)); err != nil {
				return err
			}
			send, recv = blocksOf(g, lengths)
			rs, err := g.IneighborAlltoallw(buffers(send), buffers(recv))
			if err := errors.Join(err, comm.WaitAll(ctx, rs...), check(g, "ialltoallw", recv)); err != nil {
				return err
			}
			if err := errors.Join(persistent(ctx, g, lengths), alltoallv(ctx, g, lengths)); err != nil {
				return err
			}
			send, recv = blocksOf(g, slices.Repeat([]int{2}, len(lengths)))
			into := slices.Concat(recv...)
			err = g.NeighborAlltoall(ctx, comm.Of(slices.Concat(send...)), comm.Of(into))
			for i := range recv {
				recv[i] = into[2*i:][:2]
			}
			if err := errors.Join(err, check(g, "alltoall", recv)); err != nil {
				return err
			}
		}
		return nil
	})
}

// persistent starts an exchange thrice, of the present content of its buffers.
func persistent(ctx context.Context, g *topology.Cart, lengths []int) error {
	out, in := blocksOf(g, lengths)
	p, err := g.NeighborAlltoallwInit(buffers(out), buffers(in))
	if err != nil {
		return err
	}
	for range 3 {
		send, recv := blocksOf(g, lengths)
		for i := range send {
			copy(out[i], send[i])
			copy(in[i], recv[i])
		}
		if err := errors.Join(comm.WaitAll(ctx, p.Start()...), check(g, "alltoallwinit", in)); err != nil {
			return err
		}
		for _, b := range out {
			clear(b) // sent again it would be found
		}
	}
	return nil
}

// alltoallv sends blocks that follow each other, and receives them in backward order, with a gap
// after each.
func alltoallv(ctx context.Context, g *topology.Cart, lengths []int) error {
	send, recv := blocksOf(g, lengths)
	var into, counts []int
	displs := make([]int, len(recv))
	for i := len(recv) - 1; i >= 0; i-- {
		displs[i] = len(into)
		into = append(append(into, recv[i]...), untouched)
	}
	for i := range recv {
		if counts = append(counts, len(recv[i])); counts[i] == 0 {
			displs[i] = -99 // means nothing
		}
	}
	err := g.NeighborAlltoallv(ctx, comm.Of(slices.Concat(send...)), lengths, nil, comm.Of(into), counts, displs)
	for i, n := range counts {
		if n > 0 {
			recv[i] = into[displs[i]:][:n]
			if into[displs[i]+n] != untouched {
				err = fmt.Errorf("there is %d behind block %d", into[displs[i]+n], i)
			}
		}
	}
	return errors.Join(err, check(g, "alltoallv", recv))
}

func TestNeighborAllgathersOfGrids(t *testing.T) {
	onGrids(t, func(ctx context.Context, g *topology.Cart) error {
		k := 2 * len(g.Dims())
		send, recv, want := []int{g.Rank(), -g.Rank()}, slices.Repeat([]int{untouched}, 2*k), []int{}
		for i := range k {
			if from := beside(g, i); from != comm.ProcNull {
				want = append(want, from, -from)
			} else {
				want = append(want, untouched, untouched)
			}
		}
		if err := g.NeighborAllgather(ctx, comm.Of(send), comm.Of(recv)); err != nil || !slices.Equal(recv, want) {
			return fmt.Errorf("allgather: got %v, %v, want %v", recv, err, want)
		}
		return allgatherv(ctx, g)
	})
}

// allgatherv has each rank send as many elements as its rank is, and one.
func allgatherv(ctx context.Context, g *topology.Cart) error {
	var counts, want []int
	for i := range g.Sources() {
		if from := beside(g, i); from != comm.ProcNull {
			counts = append(counts, from+1)
			want = append(want, slices.Repeat([]int{from}, from+1)...)
		} else {
			counts, want = append(counts, 1), append(want, untouched)
		}
	}
	recv := slices.Repeat([]int{untouched}, len(want))
	err := g.NeighborAllgatherv(ctx, comm.Of(slices.Repeat([]int{g.Rank()}, g.Rank()+1)), comm.Of(recv), counts, nil)
	if err != nil || !slices.Equal(recv, want) {
		return fmt.Errorf("allgatherv: got %v, %v, want %v", recv, err, want)
	}
	return nil
}

// edges are a graph of four ranks: a message goes along each. Rank 3 receives alone, rank 1 sends
// to rank 2 three times, to itself twice, and each rank has the others in another order.
var edges = [][2]int{{1, 2}, {0, 1}, {1, 1}, {1, 2}, {2, 0}, {0, 3}, {2, 1}, {1, 1}, {1, 2}, {2, 3}, {0, 2}}

// ends returns the other ends of the edges at a rank, and the message along each: its number.
func ends(rank, end int) (others, numbers []int) {
	for i, e := range edges {
		if e[end] == rank {
			others, numbers = append(others, e[1-end]), append(numbers, i)
		}
	}
	return others, numbers
}

func TestNeighborCollectivesOfAGraph(t *testing.T) {
	ranks(t, 4, func(ctx context.Context, c *comm.Comm) error {
		to, out := ends(c.Rank(), 0)
		from, want := ends(c.Rank(), 1)
		n, err := topology.NewGraph(ctx, c, from, to)
		if err != nil {
			return err
		}
		if !slices.Equal(n.Sources(), from) || !slices.Equal(n.Destinations(), to) {
			return fmt.Errorf("sources %v, destinations %v, want %v and %v", n.Sources(), n.Destinations(), from, to)
		}
		in := make([]int, len(want))
		if err := n.NeighborAlltoall(ctx, comm.Of(out), comm.Of(in)); err != nil || !slices.Equal(in, want) {
			return fmt.Errorf("alltoall: got %v, %v, want %v", in, err, want)
		}
		var send []int
		if len(to) > 0 { // else it means nothing
			send = []int{c.Rank()}
		}
		if err := n.NeighborAllgather(ctx, comm.Of(send), comm.Of(in)); err != nil || !slices.Equal(in, from) {
			return fmt.Errorf("allgather: got %v, %v, want %v", in, err, from)
		}
		return n.Close(ctx)
	})
}

func TestPartsOfAGrid(t *testing.T) {
	ranks(t, 12, func(ctx context.Context, c *comm.Comm) error {
		g, err := topology.NewCart(ctx, c, []int{2, 3, 2}, []bool{true, false, true})
		if err != nil {
			return err
		}
		for _, keep := range [][]bool{{true, true, true}, {false, true, false}, {true, false, true},
			{false, false, false}} {
			s, err := g.Sub(ctx, keep)
			if err != nil {
				return err
			}
			var dims, at []int
			var periodic []bool
			for i, kept := range keep {
				if kept {
					dims, periodic = append(dims, g.Dims()[i]), append(periodic, g.Periodic()[i])
					at = append(at, g.Coords(g.Rank())[i])
				}
			}
			if !slices.Equal(s.Dims(), dims) || !slices.Equal(s.Periodic(), periodic) ||
				!slices.Equal(s.Coords(s.Rank()), at) {
				return fmt.Errorf("keep %v: a grid %v %v with this rank at %v, want %v %v and %v", keep, s.Dims(),
					s.Periodic(), s.Coords(s.Rank()), dims, periodic, at)
			}
			if err := errors.Join(sameElsewhere(ctx, g, s, keep), s.Close(ctx)); err != nil {
				return err
			}
		}
		return g.Close(ctx)
	})
}

// sameElsewhere checks that the ranks of s are at the same place of g except in the kept
// dimensions.
func sameElsewhere(ctx context.Context, g, s *topology.Cart, keep []bool) error {
	all := make([]int, s.Size())
	if err := comm.Allgather(ctx, s.Comm, []int{g.Rank()}, all); err != nil {
		return err
	}
	for r, was := range all {
		want, in := g.Coords(g.Rank()), s.Coords(r)
		for i, kept := range keep {
			if kept {
				want[i], in = in[0], in[1:]
			}
		}
		if g.RankAt(want) != was {
			return fmt.Errorf("keep %v: rank %d was %d, want %d", keep, r, was, g.RankAt(want))
		}
	}
	return nil
}

// A persistent exchange is not started while it is under way.
func TestAnExchangeUnderWayIsNotStarted(t *testing.T) {
	ranks(t, 2, func(ctx context.Context, c *comm.Comm) error {
		g, err := topology.NewCart(ctx, c, []int{2}, []bool{false})
		if err != nil {
			return err
		}
		out, in := []int{c.Rank()}, []int{untouched}
		x, y := comm.Of(out), comm.Of(in)
		p, err := g.NeighborAlltoallwInit([]comm.Buffer{x, x}, []comm.Buffer{y, y})
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			first := slices.Clone(p.Start())
			if err := comm.WaitAll(ctx, p.Start()...); !errors.Is(err, comm.ErrActive) {
				return fmt.Errorf("started twice: %v, want %v", err, comm.ErrActive)
			}
			err = errors.Join(comm.Send(ctx, c, 1, 0, out), comm.WaitAll(ctx, first...))
		} else { // begins when rank 0 has started twice
			_, err = comm.Recv(ctx, c, 0, 0, []int{0})
			err = errors.Join(err, comm.WaitAll(ctx, p.Start()...))
		}
		if in[0] != 1-c.Rank() {
			err = errors.Join(err, fmt.Errorf("got %d", in[0]))
		}
		return errors.Join(err, g.Close(ctx))
	})
}

func TestReceivesOfTheProgramDoNotSeeNeighborCollectives(t *testing.T) {
	ranks(t, 3, func(ctx context.Context, c *comm.Comm) error {
		g, err := topology.NewCart(ctx, c, []int{3}, []bool{true})
		if err != nil {
			return err
		}
		var got, in [2]int
		r := comm.Irecv(g.Comm, comm.AnySource, comm.AnyTag, got[:])
		if err := g.NeighborAllgather(ctx, comm.Of([]int{c.Rank()}), comm.Of(in[:])); err != nil {
			return err
		}
		_, to := g.Shift(0, 1)
		if err := comm.Send(ctx, g.Comm, to, 0, []int{7, 8}); err != nil {
			return err
		}
		if _, err := r.Wait(ctx); err != nil || got != [2]int{7, 8} {
			return fmt.Errorf("got %v, %v, want 7, 8", got, err)
		}
		return g.Close(ctx)
	})
}

// Rank 0 comes once more, with a context that has ended, than its neighbors, which get what it
// sends the next time.
func TestAnEndedContextSendsNothing(t *testing.T) {
	ranks(t, 3, func(ctx context.Context, c *comm.Comm) error {
		g, err := topology.NewCart(ctx, c, []int{3}, []bool{true})
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			if err := g.NeighborAllgather(ended, comm.Of([]int{9}), comm.Of(make([]int, 2))); !errors.Is(err,
				context.Canceled) {
				return fmt.Errorf("got %v, want context.Canceled", err)
			}
		}
		got, want := make([]int, 2), []int{(c.Rank() + 2) % 3, (c.Rank() + 1) % 3}
		if err := g.NeighborAllgather(ctx, comm.Of([]int{c.Rank()}), comm.Of(got)); err != nil ||
			!slices.Equal(got, want) {
			return fmt.Errorf("got %v, %v, want %v", got, err, want)
		}
		return g.Close(ctx)
	})
}

// Rank 2 never comes.
func TestTheEndOfTheContextEndsANeighborCollective(t *testing.T) {
	ranks(t, 3, func(ctx context.Context, c *comm.Comm) error {
		g, err := topology.NewCart(ctx, c, []int{3}, []bool{true})
		if err != nil {
			return err
		}
		if c.Rank() != 2 {
			soon, cancel := context.WithTimeout(ctx, time.Duration(1+c.Rank())*time.Second)
			defer cancel()
			long := comm.Of(make([]int, 100_000))
			err := g.NeighborAlltoallw(soon, []comm.Buffer{long, long},
				[]comm.Buffer{comm.Of(make([]int, 100_000)), comm.Of(make([]int, 100_000))})
			if want := []error{context.DeadlineExceeded, comm.ErrRevoked}[c.Rank()]; !errors.Is(err, want) ||
				!strings.HasPrefix(err.Error(), "neighboralltoallw: ") {
				return fmt.Errorf("got %v, want %v", err, want)
			}
		}
		if err := g.Barrier(ctx); err != nil { // the rest of g is whole
			return err
		}
		var revoked *comm.RevokedError
		if err := g.Messages.Err(); !errors.As(err, &revoked) ||
			!strings.Contains(err.Error(), "gave up on a neighbor collective") {
			return fmt.Errorf("the messages' error is %v", err)
		}
		return g.Close(ctx)
	})
}

// Rank 0 does not come, and says so.
func TestRevokeEndsNeighborCollectives(t *testing.T) {
	ranks(t, 3, func(ctx context.Context, c *comm.Comm) error {
		g, err := topology.NewCart(ctx, c, []int{3}, []bool{true})
		if err != nil {
			return err
		}
		if err := c.Barrier(ctx); err != nil { // all have made the grid
			return err
		}
		if c.Rank() == 0 {
			g.Revoke("there is nothing to do")
		} else if err := g.NeighborAllgather(ctx, comm.Of([]int{1}), comm.Of(make([]int, 2))); !errors.Is(err,
			comm.ErrRevoked) || !strings.Contains(err.Error(), "there is nothing to do") {
			return fmt.Errorf("got %v, want ErrRevoked, and why", err)
		}
		return g.Close(ctx)
	})
}

func TestWrongArgumentsSayWhatIsWanted(t *testing.T) {
	ranks(t, 6, func(ctx context.Context, c *comm.Comm) error {
		g, err := topology.NewCart(ctx, c, []int{2, 3}, []bool{true, false})
		if err != nil {
			return err
		}
		n, err := topology.NewGraph(ctx, c, []int{c.Rank()}, []int{c.Rank()})
		if err != nil {
			return err
		}
		for want, err := range wrongCalls(ctx, c, g, n) {
			var e *comm.Error
			if !errors.Is(err, comm.ErrArgument) || !errors.As(err, &e) || e.Rank != c.Rank() ||
				!strings.Contains(err.Error(), want) {
				return fmt.Errorf("got %v, want %q", err, want)
			}
		}
		return errors.Join(g.NeighborAllgather(ctx, comm.Of([]int{1}), comm.Of(make([]int, 4))), n.Close(ctx),
			g.Close(ctx))
	})
}

func wrongCalls(ctx context.Context, c *comm.Comm, g *topology.Cart, n *topology.Neighborhood) map[string]error {
	x := func(n int) comm.Buffer { return comm.Of(make([]int, n)) }
	second := func(_ any, err error) error { return err }
	return map[string]error{
		"periodic has 1 elements: want 2, one for each dimension": second(topology.NewCart(ctx, c,
			[]int{2, 3}, []bool{true})),
		"dims[1] is 0: want 1 or more": second(topology.NewCart(ctx, c,
			[]int{2, 0}, make([]bool, 2))),
		"the grid [2 4] has more places than 6: want at most one for each rank": second(topology.NewCart(ctx, c,
			[]int{2, 4}, make([]bool, 2))),
		"the grid [6 4611686018427387904 4] has more places": second(topology.NewCart(ctx, c, []int{6, 1 << 62, 4},
			make([]bool, 3))),
		"keep has 1 elements: want 2, one for each dimension": second(g.Sub(ctx,
			[]bool{true})),
		"sources[1] is 6: want a rank, 0 to 5":       second(topology.NewGraph(ctx, c, []int{0, 6}, nil)),
		"destinations[0] is -2: want a rank, 0 to 5": second(topology.NewGraph(ctx, c, nil, []int{comm.ProcNull})),
		"neighborallgather: rank": g.NeighborAllgather(ctx,
			x(2), x(2)),
		"recv has 9 elements: want 8 (sources x send)": g.NeighborAllgather(ctx,
			x(2), x(9)),
		"3 counts and 0 displacements for recv: want 4, displacements may be nil": g.NeighborAllgatherv(ctx, x(2),
			x(8), []int{2, 2, 2}, nil),
		"4 counts and 1 displacements for recv: want 4, displacements may be nil": g.NeighborAllgatherv(ctx, x(2),
			x(8), []int{2, 2, 2, 2}, []int{0}),
		"4 counts and 5 displacements for recv: want 4, displacements may be nil": g.NeighborAllgatherv(ctx, x(2),
			x(8), []int{2, 2, 2, 2}, []int{0, 2, 4, 6, 8}),
		"block 3 of recv has 2 elements from 6 on: want it inside the 7 there are": g.NeighborAllgatherv(ctx, x(2),
			x(7), []int{2, 2, 2, 2}, nil),
		"send has 6 elements: want a multiple of 4, a block for each neighbor": g.NeighborAlltoall(ctx,
			x(6), x(4)),
		"recv has 7 elements: want a multiple of 4, a block for each neighbor": g.NeighborAlltoall(ctx,
			x(4), x(7)),
		"block 0 of send has -1 elements from 0 on: want it inside the 3 there are": n.NeighborAlltoallv(ctx, x(3),
			[]int{-1}, nil, x(3), []int{3}, nil),
		"block 0 of recv has 3 elements from 1 on: want it inside the 3 there are": n.NeighborAlltoallv(ctx, x(3),
			[]int{3}, nil, x(3), []int{3}, []int{1}),
		"block 0 of recv has 3 elements from -1 on: want it inside the 3 there are": n.NeighborAlltoallv(ctx, x(3),
			[]int{3}, nil, x(3), []int{3}, []int{-1}),
		"neighboralltoallw: rank": n.NeighborAlltoallw(ctx, nil, nil),
		"2 buffers in send and 1 in recv: want 1 and 1, as many as destinations and sources": second(n.IneighborAlltoallw([]comm.Buffer{x(1), x(1)}, []comm.Buffer{x(1)})),
		"neighboralltoallwinit: rank": second(n.NeighborAlltoallwInit(nil, nil)),
		"ineighboralltoallw: rank":    second(n.IneighborAlltoallw([]comm.Buffer{x(1)}, nil)),
	}
}
