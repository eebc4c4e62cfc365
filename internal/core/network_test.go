package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"gompi/comm"
	"gompi/internal/boot"
	"gompi/internal/core"
	"gompi/internal/core/network"
)

// testTimeout bounds what ranks of a test do together: a hang alone takes so long.
const testTimeout = 3 * time.Minute

// overTCP runs fn on n goroutine ranks that are connected by TCP, as processes
// are, and returns what each returned.
func overTCP(t testing.TB, n int, fn rankFunc) []error {
	t.Helper()
	return overTCPWith(t, n, comm.Config{}, fn)
}

func overTCPWith(t testing.TB, n int, cfg comm.Config, fn rankFunc) []error {
	t.Helper()
	return overBoots(t, boot.Group(n), cfg, fn)
}

// overBoots runs fn on goroutine ranks that are connected as processes are.
func overBoots(t testing.TB, boots []boot.Boot, cfg comm.Config, fn rankFunc) []error {
	t.Helper()
	return overFabrics(t, boots, cfg, func(int, *network.Connection) {}, fn)
}

// overFabrics is overBoots with Connections that have been changed before they are used.
func overFabrics(t testing.TB, boots []boot.Boot, cfg comm.Config, change func(rank int, f *network.Connection),
	fn rankFunc) []error {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), testTimeout, fmt.Errorf("the test took %v", testTimeout))
	defer cancel()
	errs := make([]error, len(boots))
	var all sync.WaitGroup
	for rank, b := range boots {
		all.Go(func() {
			f, err := core.Connect(core.Config{}, b)
			if err != nil {
				errs[rank] = err
				return
			}
			change(rank, &f)
			c, err := joinBy(ctx, cfg, f)
			if err != nil {
				errs[rank] = err
				return
			}
			errs[rank] = fn(ctx, c)
			if err := leave(ctx, c); err != nil && errs[rank] == nil {
				errs[rank] = err
			}
		})
	}
	all.Wait()
	return errs
}

// leave closes c, the rank's last, and notes in its host's segment that the rank has left,
// which goroutine ranks do not do themselves: others may have begun to write to it.
func leave(ctx context.Context, c *comm.Comm) error {
	err := c.Close(ctx)
	if info := inside(c).Launcher().Info(); info.Segment != nil {
		flight := info.Segment.Rank(info.LocalRank)
		flight.Join()
		flight.Leave()
	}
	return err
}

func TestCollectivesOverTCPAgreeWithTheReference(t *testing.T) { collectivesAgree(t, overTCP) }

// A way runs a function on n goroutine ranks.
type way func(t testing.TB, n int, fn rankFunc) []error

func collectivesAgree(t *testing.T, over way) {
	e := integers[int64]()
	for _, p := range []int{2, 3, 5} {
		for _, n := range []int{0, 1, 1000, 40_000} { // the longest travel on request
			if testing.Short() && n*p > 100_000 {
				continue
			}
			t.Run(fmt.Sprintf("%dx%d", p, n), func(t *testing.T) {
				err := errors.Join(over(t, p, func(ctx context.Context, c *comm.Comm) error {
					for _, kind := range everyKind {
						q := question{kind: kind, ranks: p, n: n, root: 1, gaps: true}
						if reduces(kind) {
							q.op = comm.Sum
						}
						if err := answerAll(ctx, c, e, []question{q}); err != nil {
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
}

func TestMismatchOverTCPIsReportedToAllRanks(t *testing.T) {
	tries := allTries()
	for i := range tries {
		even, odd := tries[i], tries[(i+5)%len(tries)]
		const p, where = 4, 2
		start := time.Now()
		overTCP(t, p, func(ctx context.Context, c *comm.Comm) error {
			mine := even
			if c.Rank() == where {
				mine = odd
			}
			err := mine.call(ctx, c, 100)
			if err == nil {
				err = next(ctx, c)
			}
			if problem := wrongMismatch(err, where, even.name, odd.name); problem != nil {
				t.Errorf("%s against %s: rank %d: %v", even.name, odd.name, c.Rank(), problem)
			}
			return nil
		})
		if d := time.Since(start); d > time.Minute {
			t.Errorf("%s against %s: took %v", even.name, odd.name, d)
		}
	}
}

// run is overTCP for benchmarks, which stop at an error.
func run(b *testing.B, n int, fn func(ctx context.Context, c *comm.Comm) error) {
	b.Helper()
	if err := errors.Join(overTCP(b, n, fn)...); err != nil {
		b.Fatal(err)
	}
}

func itoa(n int) string { return fmt.Sprint(n) }
