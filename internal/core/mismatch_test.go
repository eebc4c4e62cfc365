package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/internal/core"
	"gompi/internal/stress"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/inproc"
)

// A try is one collective call with n elements.
type try struct {
	name string
	call func(ctx context.Context, c *comm.Comm, n int) error
}

func allTries() []try { return triesAt(0) }

// triesAt returns the calls of all collectives, with that root where they have one.
func triesAt(root int) []try {
	f := func(n int) []float32 { return make([]float32, n) }
	counts := func(c *comm.Comm, n int) []int {
		v := make([]int, c.Size())
		for i := range v {
			v[i] = n
		}
		return v
	}
	return []try{
		{"barrier", func(ctx context.Context, c *comm.Comm, n int) error { return comm.Barrier(ctx, c) }},
		{"bcast", func(ctx context.Context, c *comm.Comm, n int) error { return comm.Bcast(ctx, c, root, f(n)) }},
		{"reduce", func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Reduce(ctx, c, root, f(n), f(n), comm.Sum)
		}},
		{"allreduce", func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Allreduce(ctx, c, f(n), f(n), comm.Sum)
		}},
		{"reducescatter", func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.ReduceScatter(ctx, c, f(n*c.Size()), f(n), counts(c, n), comm.Sum)
		}},
		{"reducescatterblock", func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.ReduceScatterBlock(ctx, c, f(n*c.Size()), f(n), comm.Sum)
		}},
		{"allgather", func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Allgather(ctx, c, f(n), f(n*c.Size()))
		}},
		{"allgatherv", func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Allgatherv(ctx, c, f(n), f(n*c.Size()), counts(c, n), nil)
		}},
		{"gather", func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Gather(ctx, c, root, f(n), f(n*c.Size()))
		}},
		{"gatherv", func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Gatherv(ctx, c, root, f(n), f(n*c.Size()), counts(c, n), nil)
		}},
		{"scatter", func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Scatter(ctx, c, root, f(n*c.Size()), f(n))
		}},
		{"scatterv", func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Scatterv(ctx, c, root, f(n*c.Size()), f(n), counts(c, n), nil)
		}},
		{"alltoall", func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Alltoall(ctx, c, f(n*c.Size()), f(n*c.Size()))
		}},
		{"alltoallv", func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Alltoallv(ctx, c, f(n*c.Size()), counts(c, n), nil, f(n*c.Size()), counts(c, n), nil)
		}},
		{"scan", func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Scan(ctx, c, f(n), f(n), comm.Sum)
		}},
		{"exscan", func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Exscan(ctx, c, f(n), f(n), comm.Sum)
		}},
	}
}

// disagree runs odd on rank where and even on the others, and checks that every
// rank learns within a second of the clock what both called.
func disagree(t *testing.T, p, where, n int, even, odd try) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		errs := commtest.Ranks(t.Context(), p, comm.Config{}, disagreeing(t, where, n, even, odd))
		for rank, err := range errs {
			// Close returns why the communicator broke.
			if !errors.Is(err, comm.ErrMismatch) {
				t.Errorf("np=%d, %s against %s: close of rank %d: %v", p, even.name, odd.name, rank, err)
			}
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("np=%d, %s against %s: took %v", p, even.name, odd.name, d)
		}
	})
}

// disagreeing is a rank that calls odd if it is rank where, and else even, and checks
// that it learns what both called.
func disagreeing(t *testing.T, where, n int, even, odd try) rankFunc {
	return func(ctx context.Context, c *comm.Comm) error {
		mine := even
		if c.Rank() == where {
			mine = odd
		}
		err := mine.call(ctx, c, n)
		if err == nil {
			err = next(ctx, c)
		}
		if problem := wrongMismatch(err, where, even.name, odd.name); problem != nil {
			t.Errorf("np=%d n=%d, %s against %s on rank %d: rank %d: %v", c.Size(), n, even.name, odd.name, where,
				c.Rank(), problem)
		}
		return nil
	}
}

// disagreeInMemory has four ranks of one host or more, which run starts, disagree in
// every way that is wanted, nil for all: about short vectors, and about long ones, which
// take many steps.
func disagreeInMemory(t *testing.T, wanted func(even, odd try, n int) bool,
	run func(t testing.TB, fn rankFunc) []error) {
	t.Helper()
	tries := allTries()
	for i, even := range tries {
		t.Run(even.name, func(t *testing.T) {
			t.Parallel() // ranks wait before they ask the others
			for j, odd := range tries {
				for _, n := range []int{4, 100_000} {
					if i == j || !stress.Asked() && (i+j)%thinly() != 0 || wanted != nil && !wanted(even, odd, n) {
						continue
					}
					start := time.Now()
					run(t, disagreeing(t, (i+j)%4, n, even, odd))
					if d := time.Since(start); d > time.Minute {
						t.Errorf("%s against %s: took %v", even.name, odd.name, d)
					}
				}
			}
		})
	}
}

// thinly says that one pair in so many is tried: all of them go by messages, in
// TestEveryPairOfDifferentCollectivesIsAMismatchOnAllRanks, and everywhere in make nightly. It is
// no divisor of the numbers of ranks, so that each is the odd one.
func thinly() int {
	if testing.Short() {
		return 5
	}
	return 3
}

// next is what a rank does that had no part in a disagreement, until it learns of
// it. A first Barrier may still come through: it takes no more than that all
// ranks have called it. No rank that has noticed takes part in a second one.
func next(ctx context.Context, c *comm.Comm) error {
	if err := comm.Barrier(ctx, c); err != nil {
		return err
	}
	return comm.Barrier(ctx, c)
}

// wrongMismatch says what is wrong with the error of a rank that disagrees.
func wrongMismatch(err error, where int, names ...string) error {
	var m *comm.MismatchError
	if !errors.Is(err, comm.ErrMismatch) || !errors.As(err, &m) {
		return fmt.Errorf("got %v, want ErrMismatch", err)
	}
	if m.Rank != where && m.Peer != where {
		return fmt.Errorf("%v: does not name rank %d, which called something else", err, where)
	}
	for _, name := range names {
		if !strings.Contains(err.Error(), name+"(") && !strings.Contains(err.Error(), name+":") {
			return fmt.Errorf("%v: does not name %s", err, name)
		}
	}
	return nil
}

func TestEveryPairOfDifferentCollectivesIsAMismatchOnAllRanks(t *testing.T) {
	tries := allTries()
	for _, p := range []int{2, 4} {
		for _, n := range []int{4, 100_000} { // sent at once, and on request
			if testing.Short() && n > 4 {
				continue
			}
			for i, even := range tries {
				for j, odd := range tries {
					if i != j {
						disagree(t, p, (i+j)%p, n, even, odd)
					}
				}
			}
		}
	}
}

func TestDifferingArgumentsAreAMismatchOnAllRanks(t *testing.T) {
	pairs := [][2]try{
		{{"bcast", func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Bcast(ctx, c, 0, make([]float32, n))
		}},
			{"bcast", func(ctx context.Context, c *comm.Comm, n int) error {
				return comm.Bcast(ctx, c, 1, make([]float32, n))
			}}},
		{{"reduce", func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Reduce(ctx, c, 0, make([]float32, n), make([]float32, n), comm.Sum)
		}}, {"reduce", func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Reduce(ctx, c, 1, make([]float32, n), make([]float32, n), comm.Sum)
		}}},
		{{"allreduce", func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Allreduce(ctx, c, make([]float32, n), make([]float32, n), comm.Sum)
		}}, {"allreduce", func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Allreduce(ctx, c, make([]float32, n+1), make([]float32, n+1), comm.Sum)
		}}},
		{{"allreduce", func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Allreduce(ctx, c, make([]float32, n), make([]float32, n), comm.Sum)
		}}, {"allreduce", func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Allreduce(ctx, c, make([]int32, n), make([]int32, n), comm.Sum)
		}}},
		{{"allreduce", func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Allreduce(ctx, c, make([]float32, n), make([]float32, n), comm.Sum)
		}}, {"allreduce", func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Allreduce(ctx, c, make([]float32, n), make([]float32, n), comm.Max)
		}}},
	}
	for _, p := range []int{2, 4} {
		for _, n := range []int{8, 100_000} {
			for _, pair := range pairs {
				disagree(t, p, p-1, n, pair[0], pair[1])
			}
		}
	}
}

// disagreeAtLast has ranks of a world disagree in every pair of different calls, each on a
// communicator of its own that is closed then, or after one more Bcast. Every rank must
// learn from its calls or Close what was called, and as the how manieth. A root of little
// has received nothing from any rank by then.
func disagreeAtLast(t *testing.T, run func(t testing.TB, fn rankFunc) []error) {
	t.Helper()
	t.Cleanup(core.PartWithin(testTimeout)) // no rank is late, but the machine may be
	tries := triesAt(0)
	for _, x := range triesAt(1) {
		if rooted(x.name) {
			tries = append(tries, x)
		}
	}
	var worlds sync.WaitGroup // at once: most of the time they wait, before ranks ask what others call
	defer worlds.Wait()
	for i, even := range tries {
		worlds.Go(func() {
			if err := errors.Join(run(t, disagreeingAtLast(t, tries, i))...); err != nil {
				t.Errorf("%s: %v", even.name, err)
			}
		})
	}
}

// disagreeingAtLast is a rank of a world in which most ranks call the i-th of tries, and
// one each other.
func disagreeingAtLast(t *testing.T, tries []try, i int) rankFunc {
	return func(ctx context.Context, c *comm.Comm) error {
		var all sync.WaitGroup
		defer all.Wait()
		for j, odd := range tries {
			for _, last := range []bool{true, false} {
				if i == j || tries[i].name != odd.name && (testing.Short() || !stress.Asked() && (i+j)%thinly() != 0) {
					continue
				}
				sub, err := c.Dup(ctx)
				if err != nil {
					return err
				}
				all.Go(func() {
					where, mine := (i+j)%c.Size(), tries[i]
					if c.Rank() == where {
						mine = odd
					}
					err := secondCallOf(ctx, sub, mine, last)
					if problem := wrongMismatch(err, where, tries[i].name, odd.name, "collective 2"); problem != nil {
						t.Errorf("%s against %s on rank %d of %d, last %v: rank %d: %v", tries[i].name, odd.name, where,
							c.Size(), last, c.Rank(), problem)
					}
				})
			}
		}
		return nil
	}
}

// secondCallOf does mine as the second and last collective on sub, or the last but one,
// and returns the first error, Close's included.
func secondCallOf(ctx context.Context, sub *comm.Comm, mine try, last bool) error {
	err := comm.Barrier(ctx, sub)
	if err == nil {
		err = mine.call(ctx, sub, 3)
	}
	if err == nil && !last {
		err = comm.Bcast(ctx, sub, 0, []int64{1})
	}
	if closed := sub.Close(ctx); err == nil {
		err = closed
	}
	return err
}

func TestLastCallsThatDifferAreAMismatch(t *testing.T) {
	for _, p := range []int{2, 4} {
		t.Run(fmt.Sprint("inproc ", p), func(t *testing.T) {
			disagreeAtLast(t, func(t testing.TB, fn rankFunc) []error {
				return commtest.Ranks(t.Context(), p, comm.Config{}, fn)
			})
		})
	}
	t.Run("tcp", func(t *testing.T) {
		disagreeAtLast(t, func(t testing.TB, fn rankFunc) []error { return overTCP(t, 4, fn) })
	})
}

// waysOf are those by which goroutine ranks of one host reach each other.
func waysOf(t *testing.T) map[string]way {
	return map[string]way{
		"inproc": func(t testing.TB, n int, fn rankFunc) []error {
			return commtest.Ranks(t.Context(), n, comm.Config{}, fn)
		},
		"tcp":    overTCP,
		"memory": overMemory,
	}
}

// A rank that calls something else when the others have closed the communicator hears of
// it at its call or Close.
func TestLateRankLearnsWhatRanksThatClosedHaveCalled(t *testing.T) {
	t.Cleanup(core.PartWithin(10 * time.Millisecond))
	const p, late = 4, 3 // which passes nothing on
	for name, run := range waysOf(t) {
		var closed sync.WaitGroup
		closed.Add(p - 1)
		err := errors.Join(run(t, p, func(ctx context.Context, c *comm.Comm) error {
			sub, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			root := 0
			if c.Rank() == late {
				closed.Wait()
				root = late
			} else {
				defer closed.Done()
			}
			err = errors.Join(comm.Bcast(ctx, sub, root, []int64{1}), sub.Close(ctx))
			if c.Rank() != late {
				return err
			}
			return wrongMismatch(err, late, "bcast", "collective 1")
		})...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A latecomer is a Sink that messages of collectives do not reach in time from one peer.
type latecomer struct {
	transport.Sink
	from world.Rank
}

func (s latecomer) Arrive(peer world.Rank, h *transport.Header) (comm.Buffer, uint64) {
	if peer == s.from && h.Kind == transport.Coll {
		return comm.Buffer{}, 0
	}
	return s.Sink.Arrive(peer, h)
}

// Messages of a call that differs may come after later collectives in which all ranks
// meet: these tell that there was one.
func TestCallsThatDifferAreFoundHoweverLateTheirMessagesAre(t *testing.T) {
	const odd = 3
	synctest.Test(t, func(t *testing.T) {
		r := newRig(4)
		r.cfg.Tuning = "allreduce:rdouble" // which sends nothing between ranks 0 and 3
		r.connect = func(rank world.Rank, s transport.Sink, p *inproc.Parker) transport.Transport {
			switch rank {
			case 0, odd:
				s = latecomer{s, odd - rank}
			}
			return r.net.Transport(rank, s, p)
		}
		errs := r.run(t.Context(), func(ctx context.Context, c *comm.Comm) error {
			v, own, counts := make([]float32, 4), make([]float32, 1), []int{0, 1, 1, 1}
			var err error
			if c.Rank() == odd {
				err = comm.Gatherv(ctx, c, 0, own, v, counts, nil)
			} else {
				err = comm.Scatterv(ctx, c, 0, v, own[:counts[c.Rank()]], counts, nil)
			}
			for range 2 {
				if err == nil {
					err = comm.Allreduce(ctx, c, own, own, comm.Sum)
				}
			}
			return err
		})
		for rank, err := range errs {
			if problem := wrongMismatch(err, odd, "scatterv", "gatherv", "collective 1"); problem != nil {
				t.Errorf("rank %d: %v", rank, problem)
			}
		}
	})
}

func TestCloseWaitsForNoRankThatHasLeft(t *testing.T) {
	t.Cleanup(core.PartWithin(testTimeout))
	for name, run := range waysOf(t) {
		sent := make(chan struct{})
		start := time.Now()
		err := errors.Join(run(t, 3, func(ctx context.Context, c *comm.Comm) error {
			err := comm.Barrier(ctx, c) // all are connected
			if c.Rank() != 0 {
				<-sent
				return errors.Join(err, leave(ctx, c))
			}
			err = errors.Join(err, comm.Bcast(ctx, c, 0, []int64{1}))
			close(sent)
			return errors.Join(err, c.Close(ctx))
		})...)
		if d := time.Since(start); err != nil || d > testTimeout/2 {
			t.Errorf("%s: after %v: %v", name, d, err)
		}
	}
}

func TestMismatchReachesHundredsOfRanks(t *testing.T) {
	tries := allTries()
	for _, where := range []int{0, 77, 199} {
		disagree(t, 200, where, 4, tries[0], tries[3])
	}
}
