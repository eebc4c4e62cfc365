package core_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"gompi/comm"
	"gompi/internal/boot"
	"gompi/internal/stress"
	"gompi/transport"
)

// What ranks of one host do through memory that all of them see.

// inRooms is overMemory, and makes sure that collectives do not go by messages.
func inRooms(t testing.TB, n int, fn rankFunc) []error {
	t.Helper()
	return overMemory(t, n, func(ctx context.Context, c *comm.Comm) error {
		if n > 1 && !inside(c).SharesMemory() {
			return errors.New("there is no shared memory")
		}
		return fn(ctx, c)
	})
}

func TestSharedMemoryAgreesWithTheReference(t *testing.T) {
	e := reals[float64]()
	ops := []comm.Op{comm.Sum, comm.Max, comm.Min, comm.Avg}
	most := 17
	if testing.Short() {
		most = 5
	}
	for p := 1; p <= most; p++ {
		if p > 9 && p < 16 && !stress.Asked() { // beside powers of two there are 3, 5, 9 and 17
			continue
		}
		t.Run(fmt.Sprint(p), func(t *testing.T) {
			all := func(ctx context.Context, c *comm.Comm) error {
				for _, kind := range everyKind {
					if err := answerAll(ctx, c, e, questions(kind, c.Size(), lengthsFor(c.Size()), ops)); err != nil {
						return err
					}
				}
				return nil
			}
			if err := errors.Join(inRooms(t, p, all)...); err != nil {
				t.Error(err)
			}
		})
	}
}

// Vectors that take many steps, in which every place is used again and again.
func TestLongVectorsInSharedMemoryAgreeWithTheReference(t *testing.T) {
	e := integers[int64]()
	for _, p := range []int{2, 3, 4} {
		for _, n := range []int{9000, 40_000, 600_000} {
			if testing.Short() && n > 9000 || !stress.Asked() && n > 40_000 && p != 3 {
				continue
			}
			if err := errors.Join(inRooms(t, p, answeringEach(e, n, comm.Sum))...); err != nil {
				t.Errorf("np=%d, n=%d: %v", p, n, err)
			}
		}
	}
}

// Communicators made of others have shared memory of their own, also when those before
// them have been closed and their memory serves again.
func TestDividedCommsShareMemory(t *testing.T) {
	const p = 4
	e := integers[int64]()
	err := errors.Join(inRooms(t, p, func(ctx context.Context, c *comm.Comm) error {
		for i := range 20 {
			half, err := c.Split(ctx, c.Rank()%2, -c.Rank())
			if err != nil {
				return err
			}
			twin, err := half.Dup(ctx)
			if err != nil {
				return err
			}
			if !inside(half).SharesMemory() || !inside(twin).SharesMemory() {
				return fmt.Errorf("round %d: half shares memory %v, its twin %v", i, inside(half).SharesMemory(),
					inside(twin).SharesMemory())
			}
			for _, c := range []*comm.Comm{half, c, twin} {
				q := question{kind: everyKind[i%len(everyKind)], ranks: c.Size(), n: 50, root: i % 2}
				if reduces(q.kind) {
					q.op = comm.Sum
				}
				if err := answerAll(ctx, c, e, []question{q, q, q}); err != nil {
					return err
				}
			}
			if err := errors.Join(half.Close(ctx), twin.Close(ctx)); err != nil {
				return err
			}
		}
		return nil
	})...)
	if err != nil {
		t.Error(err)
	}
}

func TestFunctionsCombineInRankOrderInSharedMemory(t *testing.T) {
	for _, p := range []int{2, 3, 5, 8} {
		err := errors.Join(inRooms(t, p, func(ctx context.Context, c *comm.Comm) error {
			for _, n := range []int{0, 1, p, 1000, 20_000} {
				if err := errors.Join(composeEverywhere(ctx, c, n), composeAt(ctx, c, n, 0),
					composeAt(ctx, c, n, p-1)); err != nil {
					return fmt.Errorf("np=%d, n=%d: %w", p, n, err)
				}
			}
			return nil
		})...)
		if err != nil {
			t.Error(err)
		}
	}
}

func TestFloatSumsInSharedMemoryAreTheSameBitsOnAllRanks(t *testing.T) {
	for _, p := range []int{2, 3, 5} {
		if err := errors.Join(inRooms(t, p, sameBits)...); err != nil {
			t.Error(err)
		}
	}
}

func TestMismatchInSharedMemoryIsReportedToAllRanks(t *testing.T) {
	disagreeInMemory(t, nil, func(t testing.TB, fn rankFunc) []error { return overMemory(t, 4, fn) })
}

func TestLastCallsThatDifferInSharedMemoryAreAMismatch(t *testing.T) {
	for _, p := range []int{2, 4} {
		disagreeAtLast(t, func(t testing.TB, fn rankFunc) []error { return inRooms(t, p, fn) })
	}
}

// The counts of a v form need not be equal, but those of two ranks must agree.
func TestCountsThatDoNotAgreeAreAMismatchInSharedMemory(t *testing.T) {
	ints := func(n int) []int32 { return make([]int32, n) }
	calls := map[string]func(ctx context.Context, c *comm.Comm, n int) error{
		"gatherv": func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Gatherv(ctx, c, 0, ints(n), ints(2*n), []int{n, n}, nil)
		},
		"scatterv": func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Scatterv(ctx, c, 0, ints(2*n), ints(n), []int{n, n}, nil)
		},
		"alltoallv": func(ctx context.Context, c *comm.Comm, n int) error {
			return comm.Alltoallv(ctx, c, ints(2*n), []int{n, n}, nil, ints(2*n), []int{n, n}, nil)
		},
	}
	for name, call := range calls {
		inRooms(t, 2, func(ctx context.Context, c *comm.Comm) error {
			err := call(ctx, c, 5+c.Rank())
			if err == nil {
				err = comm.Barrier(ctx, c)
			}
			var m *comm.MismatchError
			if !errors.As(err, &m) || m.Block.Bytes == m.PeerBlock.Bytes {
				t.Errorf("%s: rank %d: got %v, want ErrMismatch about bytes", name, c.Rank(), err)
			}
			return nil
		})
	}
}

// A rank that dies breaks the room for all others, whatever they are doing there.
func TestDeathInSharedMemoryRevokesTheCommOnAllOtherRanks(t *testing.T) {
	for i, kind := range everyKind {
		for _, n := range []int{10, 100_000} {
			p := 2 + i%3
			victim := (p + len(kind)) % p
			overMemory(t, p, dying(t, victim, question{kind: kind, ranks: p, n: n, root: p / 2, gaps: true}))
		}
	}
}

func TestSharedMemoryWithoutARankThatLeftFailsEverywhere(t *testing.T) {
	kinds := everyKind
	if testing.Short() {
		kinds = []string{"allreduce", "bcast"} // the wait for one that has left is noticed after a while
	}
	for _, kind := range kinds {
		const p, gone = 3, 2
		inRooms(t, p, func(ctx context.Context, c *comm.Comm) error {
			if c.Rank() == gone {
				return leave(ctx, c)
			}
			missing(ctx, t, c, kind, gone)
			return nil
		})
	}
}

func TestContextThatEndsInSharedMemoryBreaksTheComm(t *testing.T) {
	const p, quitter, late = 3, 1, 2
	inRooms(t, p, func(ctx context.Context, c *comm.Comm) error {
		on := ctx
		switch c.Rank() {
		case late: // busy with something else, until it hears of it
			if problem := wrongCause(second(comm.Recv(ctx, c, 0, 99, []int{})), quitter,
				errEnough.Error()); problem != nil {
				t.Errorf("rank %d, outside: %v", late, problem)
			}
			return nil
		case quitter:
			short, cancel := context.WithTimeoutCause(ctx, 20*time.Millisecond, errEnough)
			defer cancel()
			on = short
		}
		err := comm.Barrier(on, c)
		switch {
		case c.Rank() == quitter && !errors.Is(err, errEnough):
			t.Errorf("rank %d, which gave up: got %v, want its cause", quitter, err)
		case c.Rank() != quitter && wrongCause(err, quitter, errEnough.Error()) != nil:
			t.Errorf("rank %d: %v", c.Rank(), wrongCause(err, quitter, errEnough.Error()))
		}
		return nil
	})
}

// Close returns when the collectives that it ends touch nothing any more.
func TestCloseReturnsAfterTheCollectivesThatItEnds(t *testing.T) {
	err := errors.Join(inRooms(t, 2, func(ctx context.Context, c *comm.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		var last atomic.Bool
		inside, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			v := []int{1}
			ended <- comm.AllreduceFunc(ctx, d, v, v, func(acc, in []int) {
				close(inside)
				for d.Err() == nil { // until Close has begun
					runtime.Gosched()
				}
				for range 1000 {
					runtime.Gosched()
				}
				last.Store(true)
			})
		}()
		<-inside
		if err := d.Close(ctx); err != nil {
			return err
		}
		if !last.Load() {
			return errors.New("Close returned in the midst of an allreduce")
		}
		<-ended
		return comm.Barrier(ctx, c)
	})...)
	if err != nil {
		t.Error(err)
	}
}

// dying returns what ranks do of which one dies between a collective and the next: all
// others must hear of it.
func dying(t *testing.T, victim int, q question) rankFunc {
	e := integers[int64]()
	if reduces(q.kind) {
		q.op = comm.Sum
	}
	return func(ctx context.Context, c *comm.Comm) error {
		if err := answerAll(ctx, c, e, []question{q}); err != nil {
			return err
		}
		if c.Rank() == victim {
			inside(c).Launcher().(*boot.Member).Die("killed by signal 9")
			return nil
		}
		err := answerAll(ctx, c, e, []question{q})
		for err == nil { // its part was done without the victim
			err = comm.Barrier(ctx, c)
		}
		if problem := wrongCause(err, victim, "killed by signal 9"); problem != nil {
			t.Errorf("%v: rank %d: %v", q, c.Rank(), problem)
		}
		return nil
	}
}

// A rank that finds a mismatch and leaves has told the launcher, whose news may come late:
// who misses that rank in Close waits for them.
func TestCloseMissesARankThatHasFoundAMismatch(t *testing.T) {
	boots, s := withMemory(t, 4)
	defer s.Close()
	boots[3] = boot.Late(boots[3], 50*time.Millisecond)
	scattered, closed := make(chan struct{}), make(chan struct{})
	tl := tally{hook: func(rank int, h *transport.Header) {
		if rank == 3 && h.Kind == transport.Revoke {
			h.Kind, h.A, h.B = transport.Credit, 0, 0 // nothing
		}
	}}
	tl.over(t, boots, func(ctx context.Context, c *comm.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		root := 0
		if c.Rank() == 2 {
			root = 1
			<-scattered
		}
		err = comm.Scatter(ctx, d, root, make([]int64, 4), make([]int64, 1))
		if err == nil { // which rank 2 does not come to
			err = comm.Bcast(ctx, d, 0, []int64{1})
		}
		if c.Rank() == 3 { // it has looked at rank 0 alone
			close(scattered)
			<-closed
		}
		err = errors.Join(err, d.Close(ctx))
		if c.Rank() == 2 {
			leave(ctx, c)
			close(closed)
		}
		if r := c.Rank(); r > 1 && !errors.Is(err, comm.ErrMismatch) {
			t.Errorf("rank %d: got %v, want ErrMismatch", r, err)
		}
		return nil
	})
}
