package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/comm"
	"gompi/internal/boot"
	"gompi/internal/seg"
	"gompi/internal/stress"
	"gompi/internal/world"
)

// overHosts runs fn on goroutine ranks, of which the i-th is on host hostOf[i]: each
// host has a segment, and TCP is between them.
func overHosts(t testing.TB, hostOf []int32, cfg comm.Config, fn rankFunc) []error {
	t.Helper()
	boots := boot.Group(len(hostOf))
	hosts := int(slices.Max(hostOf)) + 1
	for h := range hosts {
		var ranks []world.Rank
		var bells []int
		for r, on := range hostOf {
			if int(on) == h {
				ranks, bells = append(ranks, world.Rank(r)), append(bells, eventfd(t))
			}
		}
		s, err := seg.New(ranks)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for i, r := range ranks {
			info := boots[r].Info()
			info.Segment, info.Bells, info.LocalRank = s, slices.Clone(bells), world.LocalRank(i)
			info.Nodes, info.Node, info.NodeOf = hosts, h, hostOf
			info.Hosts = []string{"ash", "elm", "fir", "oak"}[:hosts]
			// A rank closes its own doorbell, which the others may still ring.
			if info.Bells[i], err = unix.Dup(bells[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	return overBoots(t, boots, cfg, fn)
}

// hierarchically is overHosts, and makes sure that collectives are hierarchical, long ones with
// shares.
func hierarchically(t testing.TB, hostOf []int32, fn rankFunc) []error {
	t.Helper()
	return overHosts(t, hostOf, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
		if !inside(c).IsHierarchical() {
			return errors.New("there is no hierarchy")
		}
		inside(c).Share(32 << 10)
		return fn(ctx, c)
	})
}

// Where ranks are: hosts with as many each, in rank order or dealt out, with more on
// one than on another, with a single one.
var places = [][]int32{
	{0, 0, 1, 1},
	{0, 1, 0, 1},
	{0, 0, 1},
	{0, 1, 1, 1, 0},
	{0, 0, 1, 1, 2, 2},
	{0, 1, 2, 0, 1, 2, 0, 1, 2},
	{1, 1, 1, 0, 2, 0, 2, 1},
}

func TestHierarchicalCollectivesAgreeWithTheReference(t *testing.T) {
	e := reals[float64]()
	ops := []comm.Op{comm.Sum, comm.Max, comm.Min, comm.Avg}
	for i, hostOf := range places {
		if testing.Short() && i%3 != 1 {
			continue
		}
		t.Run(fmt.Sprint(hostOf), func(t *testing.T) {
			err := errors.Join(hierarchically(t, hostOf, func(ctx context.Context, c *comm.Comm) error {
				for _, kind := range everyKind {
					if err := answerAll(ctx, c, e, questions(kind, c.Size(), lengthsFor(c.Size()), ops)); err != nil {
						return err
					}
				}
				return nil
			})...)
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// Vectors of which members carry shares.
func TestLongVectorsInAHierarchyAgreeWithTheReference(t *testing.T) {
	e := reals[float64]()
	for i, hostOf := range places {
		for _, n := range []int{9000, 40_000} {
			// each place with one length
			if testing.Short() && (i+n/9000)%4 > 0 || !stress.Asked() && (i+n/9000)%2 > 0 {
				continue
			}
			if err := errors.Join(hierarchically(t, hostOf, answeringEach(e, n, comm.Avg))...); err != nil {
				t.Errorf("hosts %v, n=%d: %v", hostOf, n, err)
			}
		}
	}
}

// Vectors that go in several chunks, by those who speak and by those who carry shares; between more
// than two hosts some go along a chain.
func TestChunksInAHierarchyAgreeWithTheReference(t *testing.T) {
	const n = 180_000
	e := reals[float64]()
	for _, hostOf := range [][]int32{{0, 0, 1, 1}, {0, 1, 1, 1, 0}, {0, 0, 1}, {0, 0, 1, 1, 2, 2},
		{0, 1, 1, 2, 3, 1, 0}} {
		for _, from := range []int{0, math.MaxInt} {
			err := errors.Join(hierarchically(t, hostOf, func(ctx context.Context, c *comm.Comm) error {
				inside(c).Share(from)
				for _, kind := range []string{"bcast", "reduce", "allreduce"} {
					q := question{kind: kind, ranks: c.Size(), n: n, root: c.Size() - 1}
					if reduces(kind) {
						q.op, q.inPlace = comm.Avg, kind == "reduce"
					}
					if err := answerAll(ctx, c, e, []question{q, q}); err != nil {
						return err
					}
				}
				return nil
			})...)
			if err != nil {
				t.Errorf("hosts %v, shares from %d: %v", hostOf, from, err)
			}
		}
	}
}

// Long blocks between more than two hosts, combined while others are sent. In place, the result may
// lie in the block of any host.
func TestLongBlocksBetweenSeveralHostsAgreeWithTheReference(t *testing.T) {
	const n = 17_000
	e := reals[float64]()
	for _, hostOf := range [][]int32{{0, 0, 1, 1, 2, 2}, {0, 1, 2, 0, 1, 2}} {
		err := errors.Join(hierarchically(t, hostOf, func(ctx context.Context, c *comm.Comm) error {
			for _, inPlace := range []bool{false, true} {
				q := question{kind: "reducescatterblock", ranks: c.Size(), n: n, op: comm.Avg, inPlace: inPlace}
				if err := answerAll(ctx, c, e, []question{q, q}); err != nil {
					return err
				}
			}
			return nil
		})...)
		if err != nil {
			t.Errorf("hosts %v: %v", hostOf, err)
		}
	}
}

// Functions need not commute: whatever the hosts, operands are combined in rank order.
func TestFunctionsCombineInRankOrderInAHierarchy(t *testing.T) {
	for _, hostOf := range places {
		p := len(hostOf)
		err := errors.Join(hierarchically(t, hostOf, func(ctx context.Context, c *comm.Comm) error {
			for _, n := range []int{0, 1, p, 1000, 20_000} {
				if err := errors.Join(composeEverywhere(ctx, c, n), composeAt(ctx, c, n, 0),
					composeAt(ctx, c, n, p-1)); err != nil {
					return fmt.Errorf("hosts %v, n=%d: %w", hostOf, n, err)
				}
			}
			return nil
		})...)
		if err != nil {
			t.Error(err)
		}
	}
}

func TestFloatSumsInAHierarchyAreTheSameBitsOnAllRanks(t *testing.T) {
	for _, hostOf := range places {
		if err := errors.Join(hierarchically(t, hostOf, sameBits)...); err != nil {
			t.Errorf("hosts %v: %v", hostOf, err)
		}
	}
}

// Parts of a communicator are hierarchical where they span hosts, and share memory where they do
// not.
func TestDividedCommsAreHierarchicalOrShareMemory(t *testing.T) {
	e := integers[int64]()
	err := errors.Join(hierarchically(t, []int32{0, 0, 0, 1, 1, 1}, func(ctx context.Context, c *comm.Comm) error {
		for i := range 10 {
			host, err := c.SplitHost(ctx)
			if err != nil {
				return err
			}
			most, err := c.Split(ctx, c.Rank()%3/2, -c.Rank()) // two of each host, one of each host
			if err != nil {
				return err
			}
			twin, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			if !inside(host).SharesMemory() || inside(most).IsHierarchical() != (most.Size() == 4) ||
				!inside(twin).IsHierarchical() {
				return fmt.Errorf("round %d: host shares memory %v, %d ranks hierarchical %v, twin %v", i,
					inside(host).SharesMemory(), most.Size(), inside(most).IsHierarchical(),
					inside(twin).IsHierarchical())
			}
			for _, c := range []*comm.Comm{host, most, c, twin} {
				q := question{kind: everyKind[i%len(everyKind)], ranks: c.Size(), n: 50, root: i % 2}
				if reduces(q.kind) {
					q.op = comm.Sum
				}
				if err := answerAll(ctx, c, e, []question{q, q, q}); err != nil {
					return err
				}
			}
			if err := errors.Join(host.Close(ctx), most.Close(ctx), twin.Close(ctx)); err != nil {
				return err
			}
		}
		return nil
	})...)
	if err != nil {
		t.Error(err)
	}
}

// What a rank that is not the root gives as recv means nothing, however short it is.
func TestReduceInAHierarchyLeavesWhatIsNotForIt(t *testing.T) {
	for _, n := range []int{10, 20_000} {
		err := errors.Join(hierarchically(t, []int32{0, 0, 1, 1}, func(ctx context.Context, c *comm.Comm) error {
			send, recv := make([]int64, n), []int64{7, 7}
			if c.Rank() == 1 {
				recv = make([]int64, n)
			}
			for i := range send {
				send[i] = int64(c.Rank())
			}
			if err := comm.Reduce(ctx, c, 1, send, recv, comm.Sum); err != nil {
				return err
			}
			if want := map[bool]int64{true: 6, false: 7}[c.Rank() == 1]; recv[0] != want || recv[len(recv)-1] != want {
				return fmt.Errorf("rank %d: %d and %d, want %d", c.Rank(), recv[0], recv[len(recv)-1], want)
			}
			return nil
		})...)
		if err != nil {
			t.Error(err)
		}
	}
}

// In deterministic mode results are those of messages, bit by bit.
func TestDeterministicSumsInAHierarchyAreThoseOfMessages(t *testing.T) {
	for _, hostOf := range places[:4] {
		var sums [2][]float32
		for i, tuning := range []string{"", "allreduce:rdouble"} {
			err := errors.Join(overHosts(t, hostOf, comm.Config{Deterministic: true, Tuning: tuning},
				func(ctx context.Context, c *comm.Comm) error {
					x := make([]float32, 100_000)
					for k := range x {
						x[k] = 1 / float32(k+c.Rank()+1)
					}
					err := comm.Allreduce(ctx, c, x, x, comm.Sum)
					if c.Rank() == 0 {
						sums[i] = x
					}
					return err
				})...)
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := equal("sums", sums[0], sums[1]); err != nil {
			t.Errorf("hosts %v: %v", hostOf, err)
		}
	}
}

func TestMismatchInAHierarchyIsReportedToAllRanks(t *testing.T) {
	disagreeInMemory(t, nil, func(t testing.TB, fn rankFunc) []error {
		return hierarchically(t, []int32{0, 0, 1, 1}, fn)
	})
}

func TestLastCallsThatDifferInAHierarchyAreAMismatch(t *testing.T) {
	disagreeAtLast(t, func(t testing.TB, fn rankFunc) []error { return hierarchically(t, []int32{0, 0, 1, 1}, fn) })
}

// A rank that dies breaks the communicator for all others, wherever they are in it.
func TestDeathInAHierarchyRevokesTheCommOnAllOtherRanks(t *testing.T) {
	stress.Slow(t, "it kills ranks again and again")
	for i, kind := range everyKind {
		for _, n := range []int{10, 100_000} {
			if testing.Short() && (n > 10) == (i%2 == 0) {
				continue
			}
			hostOf := places[i%len(places)]
			p := len(hostOf)
			victim := (p + len(kind)) % p
			hierarchically(t, hostOf, dying(t, victim, question{kind: kind, ranks: p, n: n, root: p / 2, gaps: true}))
		}
	}
}

func TestHierarchyWithoutARankThatLeftFailEverywhere(t *testing.T) {
	for _, kind := range []string{"allreduce", "gather"} {
		const p, gone = 4, 3
		hierarchically(t, []int32{0, 0, 1, 1}, func(ctx context.Context, c *comm.Comm) error {
			if c.Rank() == gone {
				return leave(ctx, c)
			}
			missing(ctx, t, c, kind, gone)
			return nil
		})
	}
}

// Many collectives one after the other, of all kinds and lengths, in which ranks come
// late at any point: what one of them stores for the others stays until it is read.
func TestStressHierarchies(t *testing.T) {
	const most = 1 << 16
	e := integers[int64]()
	rounds := 300
	if testing.Short() {
		rounds = 30
	}
	for _, hostOf := range [][]int32{{0, 0, 1, 1}, {0, 1, 0, 1, 0, 1}} {
		p := len(hostOf)
		err := errors.Join(hierarchically(t, hostOf, func(ctx context.Context, c *comm.Comm) error {
			dice, own := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(3, uint64(c.Rank())))
			memory, err := comm.Alloc[int64](ctx, c, 2*(most+4)*p+100)
			if err != nil {
				return err
			}
			for range rounds {
				q := question{kind: everyKind[dice.IntN(len(everyKind))], ranks: p, n: 1 << dice.IntN(17),
					root: dice.IntN(p), inPlace: dice.IntN(2) == 0}
				if reduces(q.kind) {
					q.op = comm.Sum
				}
				for range own.IntN(1 << own.IntN(12)) {
					runtime.Gosched()
				}
				mine := memory
				if dice.IntN(4) == 0 {
					mine = nil
				}
				if err := answerAllocated(ctx, c, e, q, mine, own.IntN(2)); err != nil {
					return err
				}
			}
			return nil
		})...)
		if err != nil {
			t.Errorf("hosts %v: %v", hostOf, err)
		}
	}
}
