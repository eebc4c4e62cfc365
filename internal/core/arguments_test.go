package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"gompi/comm"
)

// badCall is a call with a wrong argument, on a communicator of three ranks.
type badCall struct {
	name string
	call func(ctx context.Context, c *comm.Comm) error
}

func TestWrongArgumentsAreFoundBeforeAnythingIsSent(t *testing.T) {
	x := func(n int) []int32 { return make([]int32, n) }
	three := func(a, b, d int) []int { return []int{a, b, d} }
	tryBad(t, []badCall{
		{"bcast root", func(x_ ctxt, c cm) error { return comm.Bcast(x_, c, 3, x(1)) }},
		{"bcast root of 33 bits", func(x_ ctxt, c cm) error { return comm.Bcast(x_, c, 1<<32, x(1)) }},
		{"reduce root of 33 bits", func(x_ ctxt, c cm) error {
			return comm.Reduce(x_, c, 1<<32|1, x(1), x(1), comm.Sum)
		}},
		{"gather root of 33 bits", func(x_ ctxt, c cm) error { return comm.Gather(x_, c, 1<<32, x(1), x(3)) }},
		{"gatherv root of 33 bits", func(x_ ctxt, c cm) error {
			return comm.Gatherv(x_, c, 1<<32, x(1), x(3), three(1, 1, 1), nil)
		}},
		{"scatter root of 33 bits", func(x_ ctxt, c cm) error { return comm.Scatter(x_, c, 1<<32, x(3), x(1)) }},
		{"scatterv root of 33 bits", func(x_ ctxt, c cm) error {
			return comm.Scatterv(x_, c, 1<<32, x(3), x(1), three(1, 1, 1), nil)
		}},
		{"ibcast root of 33 bits", func(x_ ctxt, c cm) error {
			return second(c.Ibcast(1<<32, comm.Of(x(1))).Wait(x_))
		}},
		{"persistent root of 33 bits", func(x_ ctxt, c cm) error {
			return second(c.BcastInit(1<<32, comm.Of(x(1))).Start().Wait(x_))
		}},
		{"bcast root below", func(x_ ctxt, c cm) error { return comm.Bcast(x_, c, -1, x(1)) }},
		{"reduce root", func(x_ ctxt, c cm) error { return comm.Reduce(x_, c, 7, x(1), x(1), comm.Sum) }},
		{"allreduce lengths", func(x_ ctxt, c cm) error { return comm.Allreduce(x_, c, x(2), x(3), comm.Sum) }},
		{"scan lengths", func(x_ ctxt, c cm) error { return comm.Scan(x_, c, x(3), x(2), comm.Sum) }},
		{"exscan lengths", func(x_ ctxt, c cm) error { return comm.Exscan(x_, c, x(3), nil, comm.Sum) }},
		{"reducescatterblock", func(x_ ctxt, c cm) error {
			return comm.ReduceScatterBlock(x_, c, x(7), x(2), comm.Sum)
		}},
		{"reducescatter few counts", func(x_ ctxt, c cm) error {
			return comm.ReduceScatter(x_, c, x(2), x(1), []int{1, 1}, comm.Sum)
		}},
		{"reducescatter no counts", func(x_ ctxt, c cm) error {
			return comm.ReduceScatter(x_, c, x(2), x(1), nil, comm.Sum)
		}},
		{"reducescatter negative", func(x_ ctxt, c cm) error {
			return comm.ReduceScatter(x_, c, x(3), x(4), three(4, -5, 4), comm.Sum)
		}},
		{"reducescatter sum", func(x_ ctxt, c cm) error {
			return comm.ReduceScatter(x_, c, x(4), x(1), three(1, 1, 1), comm.Sum)
		}},
		{"reducescatter recv", func(x_ ctxt, c cm) error {
			return comm.ReduceScatter(x_, c, x(3), x(2), three(1, 1, 1), comm.Sum)
		}},
		{"allgather lengths", func(x_ ctxt, c cm) error { return comm.Allgather(x_, c, x(2), x(5)) }},
		{"allgatherv send", func(x_ ctxt, c cm) error {
			return comm.Allgatherv(x_, c, x(2), x(9), three(3, 3, 3), nil)
		}},
		{"allgatherv outside", func(x_ ctxt, c cm) error {
			return comm.Allgatherv(x_, c, x(3), x(8), three(3, 3, 3), nil)
		}},
		{"allgatherv displacements", func(x_ ctxt, c cm) error {
			return comm.Allgatherv(x_, c, x(3), x(9), three(3, 3, 3), three(0, 3, 7))
		}},
		{"allgatherv below", func(x_ ctxt, c cm) error {
			return comm.Allgatherv(x_, c, x(1), x(9), three(1, 1, 1), three(0, -1, 7))
		}},
		{"allgatherv overflow", func(x_ ctxt, c cm) error {
			return comm.Allgatherv(x_, c, x(1), x(9), three(1, 1, 1), three(0, math.MaxInt, 7))
		}},
		{"allgatherv huge counts", func(x_ ctxt, c cm) error {
			return comm.Allgatherv(x_, c, x(1), x(9), three(1, math.MaxInt, math.MaxInt), nil)
		}},
		{"allgatherv few displacements", func(x_ ctxt, c cm) error {
			return comm.Allgatherv(x_, c, x(1), x(9), three(1, 1, 1), []int{0, 1})
		}},
		{"alltoall ranks", func(x_ ctxt, c cm) error { return comm.Alltoall(x_, c, x(4), x(4)) }},
		{"alltoall lengths", func(x_ ctxt, c cm) error { return comm.Alltoall(x_, c, x(3), x(6)) }},
		{"alltoallv send", func(x_ ctxt, c cm) error {
			return comm.Alltoallv(x_, c, x(2), three(1, 1, 1), nil, x(3), three(1, 1, 1), nil)
		}},
		{"alltoallv recv", func(x_ ctxt, c cm) error {
			return comm.Alltoallv(x_, c, x(3), three(1, 1, 1), nil, x(3), three(1, 1, 1), three(0, 1, 3))
		}},
		{"alltoallv own block", func(x_ ctxt, c cm) error {
			own := three(1, 1, 1)
			own[c.Rank()] = 2
			return comm.Alltoallv(x_, c, x(3), three(1, 1, 1), nil, x(4), own, nil)
		}},
	})
}

// Arguments that only one rank passes are checked on that one.
func TestWrongArgumentsOfTheRootAreFound(t *testing.T) {
	x := func(n int) []int32 { return make([]int32, n) }
	const root = 1
	for _, b := range []badCall{
		{"reduce lengths", func(x_ ctxt, c cm) error { return comm.Reduce(x_, c, root, x(2), x(3), comm.Sum) }},
		{"gather lengths", func(x_ ctxt, c cm) error { return comm.Gather(x_, c, root, x(2), x(5)) }},
		{"gatherv counts", func(x_ ctxt, c cm) error {
			return comm.Gatherv(x_, c, root, x(1), x(3), []int{1, 1}, nil)
		}},
		{"gatherv send", func(x_ ctxt, c cm) error {
			return comm.Gatherv(x_, c, root, x(1), x(6), []int{2, 2, 2}, nil)
		}},
		{"scatter lengths", func(x_ ctxt, c cm) error { return comm.Scatter(x_, c, root, x(5), x(2)) }},
		{"scatterv outside", func(x_ ctxt, c cm) error {
			return comm.Scatterv(x_, c, root, x(3), x(1), []int{1, 1, 1}, []int{0, 1, 3})
		}},
		{"scatterv recv", func(x_ ctxt, c cm) error {
			return comm.Scatterv(x_, c, root, x(3), x(2), []int{1, 1, 1}, nil)
		}},
	} {
		inBubble(t, 3, func(ctx context.Context, c *comm.Comm) error {
			if c.Rank() == root {
				if err := b.call(ctx, c); !errors.Is(err, comm.ErrArgument) {
					t.Errorf("%s: got %v, want ErrArgument", b.name, err)
				}
			}
			return comm.Barrier(ctx, c) // nothing was sent, nothing broke
		})
	}
}

func TestSendAndRecvShareMemoryOnlyInPlace(t *testing.T) {
	v := make([]int32, 100)
	counts, apart := []int{2, 2, 2}, []int{10, 20, 30}
	other := func(c cm) int { return (c.Rank() + 1) % 3 }
	tryBad(t, []badCall{
		{"allreduce", func(x ctxt, c cm) error { return comm.Allreduce(x, c, v[0:4], v[1:5], comm.Sum) }},
		{"scan", func(x ctxt, c cm) error { return comm.Scan(x, c, v[1:5], v[0:4], comm.Sum) }},
		{"alltoall", func(x ctxt, c cm) error { return comm.Alltoall(x, c, v[0:6], v[3:9]) }},
		{"allgather: another rank's block", func(x ctxt, c cm) error {
			return comm.Allgather(x, c, v[2*other(c):][:2], v[:6])
		}},
		{"allgather: not a block", func(x ctxt, c cm) error {
			return comm.Allgather(x, c, v[2*c.Rank()+1:][:2], v[:6])
		}},
		{"allgather: partly outside", func(x ctxt, c cm) error { return comm.Allgather(x, c, v[5:7], v[:6]) }},
		{"allgatherv: another rank's block", func(x ctxt, c cm) error {
			return comm.Allgatherv(x, c, v[apart[other(c)]:][:2], v, counts, apart)
		}},
		{"allgatherv: where it would be packed", func(x ctxt, c cm) error {
			return comm.Allgatherv(x, c, v[10+c.Rank():][:2], v[1:], counts, apart)
		}},
		{"reducescatterblock: another rank's block", func(x ctxt, c cm) error {
			return comm.ReduceScatterBlock(x, c, v[:6], v[[]int{2, 4, 2}[c.Rank()]:][:2], comm.Sum)
		}},
		{"reducescatter: not a block", func(x ctxt, c cm) error {
			return comm.ReduceScatter(x, c, v[:6], v[2*c.Rank()+1:][:2], counts, comm.Sum)
		}},
		{"alltoallv: other displacements", func(x ctxt, c cm) error {
			return comm.Alltoallv(x, c, v, counts, apart, v, counts, []int{30, 20, 10})
		}},
		{"alltoallv: other counts", func(x ctxt, c cm) error {
			more := []int{3, 3, 3}
			more[c.Rank()] = 2
			return comm.Alltoallv(x, c, v, counts, nil, v, more, nil)
		}},
		{"alltoallv: shifted", func(x ctxt, c cm) error {
			return comm.Alltoallv(x, c, v[0:6], counts, nil, v[1:7], counts, nil)
		}},
	})
}

func TestWrongRanksAndTagsOfMessages(t *testing.T) {
	x := make([]int, 1)
	tryBad(t, []badCall{
		{"send to", func(ctx ctxt, c cm) error { return comm.Send(ctx, c, 3, 0, x) }},
		{"send to any", func(ctx ctxt, c cm) error { return comm.Send(ctx, c, comm.AnySource, 0, x) }},
		{"send tag", func(ctx ctxt, c cm) error { return comm.Send(ctx, c, 0, -1, x) }},
		{"send large tag", func(ctx ctxt, c cm) error { return comm.Send(ctx, c, 0, 1<<31, x) }},
		{"ssend to", func(ctx ctxt, c cm) error { return comm.Ssend(ctx, c, -3, 0, x) }},
		{"recv from", func(ctx ctxt, c cm) error { return second(comm.Recv(ctx, c, 3, 0, x)) }},
		{"recv tag", func(ctx ctxt, c cm) error { return second(comm.Recv(ctx, c, 0, -2, x)) }},
		{"sendrecv to", func(ctx ctxt, c cm) error { return second(comm.Sendrecv(ctx, c, 5, 0, x, 0, 0, x)) }},
		{"sendrecv from", func(ctx ctxt, c cm) error { return second(comm.Sendrecv(ctx, c, 0, 0, x, 5, 0, x)) }},
		{"isend", func(ctx ctxt, c cm) error { return second(comm.Isend(c, 4, 0, x).Wait(ctx)) }},
		{"isend to 33 bits", func(ctx ctxt, c cm) error { return second(comm.Isend(c, 1<<32, 0, x).Wait(ctx)) }},
		{"irecv from 33 bits", func(ctx ctxt, c cm) error { return second(comm.Irecv(c, 1<<32|1, 0, x).Wait(ctx)) }},
		{"isend tag of 33 bits", func(ctx ctxt, c cm) error { return second(comm.Isend(c, 1, 1<<32, x).Wait(ctx)) }},
		{"persistent to 33 bits", func(ctx ctxt, c cm) error {
			return second(c.SendInit(1<<32, 0, comm.Of(x)).Start().Wait(ctx))
		}},
		{"irecv", func(ctx ctxt, c cm) error { return second(comm.Irecv(c, 4, 0, x).Wait(ctx)) }},
		{"probe", func(ctx ctxt, c cm) error { return second(c.Probe(ctx, 4, 0)) }},
		{"improbe", func(ctx ctxt, c cm) error { return second(c.Improbe(0, -3)) }},
		{"alloc", func(ctx ctxt, c cm) error { return second(comm.Alloc[int](ctx, c, -1)) }},
	})
}

// tryBad makes each call on all ranks, blocking, and sees that it is refused and
// breaks nothing.
func tryBad(t *testing.T, bad []badCall) {
	t.Helper()
	for _, b := range bad {
		inBubble(t, 3, func(ctx context.Context, c *comm.Comm) error {
			err := b.call(ctx, c)
			if !errors.Is(err, comm.ErrArgument) {
				return fmt.Errorf("%s: got %v, want ErrArgument", b.name, err)
			}
			var e *comm.Error
			if !errors.As(err, &e) || e.Rank != c.Rank() || e.Peer != -1 {
				return fmt.Errorf("%s: %v does not name rank %d alone", b.name, err, c.Rank())
			}
			return errors.Join(comm.Barrier(ctx, c), c.Err())
		})
	}
}
