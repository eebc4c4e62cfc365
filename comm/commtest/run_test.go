package commtest_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/internal/stress"
)

// A recorder is a testing.TB that notes errors instead of failing.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func TestRunGivesEveryRankItsWorld(t *testing.T) {
	var seen [5]atomic.Int32
	commtest.Run(t, 5, func(ctx context.Context, c *comm.Comm) error {
		seen[c.Rank()].Add(1)
		if c.Size() != 5 || c.Name() != "world" {
			return fmt.Errorf("got %v", c)
		}
		return comm.Barrier(ctx, c)
	})
	for r := range seen {
		if n := seen[r].Load(); n != 1 {
			t.Errorf("rank %d ran %d times", r, n)
		}
	}
}

func TestRunReportsTheErrorsOfAllRanks(t *testing.T) {
	rec := &recorder{TB: t}
	commtest.Run(rec, 3, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 1 {
			return errors.New("boom")
		}
		return comm.Barrier(ctx, c)
	})
	if len(rec.errors) != 3 {
		t.Fatalf("got %q, want an error of each rank", rec.errors)
	}
	if rec.errors[1] != "rank 1 of 3: boom" {
		t.Errorf("got %q", rec.errors[1])
	}
	for _, r := range []int{0, 2} {
		if !strings.Contains(rec.errors[r], "rank 1 (host localhost) is lost: failed: boom") {
			t.Errorf("rank %d: got %q", r, rec.errors[r])
		}
	}
}

func TestPanicIsTheDeathOfItsRankAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errs := commtest.Ranks(t.Context(), 2, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
			if c.Rank() == 0 {
				panic("ouch")
			}
			return comm.Barrier(ctx, c)
		})
		if errs[0] == nil || !strings.HasPrefix(errs[0].Error(), "panic: ouch\n") ||
			!strings.Contains(errs[0].Error(), "run_test.go") {
			t.Errorf("rank 0: %v: want the panic with its stack", errs[0])
		}
		if !errors.Is(errs[1], comm.ErrRevoked) || !strings.Contains(errs[1].Error(), "ouch") ||
			strings.Contains(errs[1].Error(), "run_test.go") {
			t.Errorf("rank 1: %v: want ErrRevoked with the panic, without its stack", errs[1])
		}
	})
}

func TestRankThatExitsIsReported(t *testing.T) {
	errs := commtest.Ranks(t.Context(), 2, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 0 {
			runtime.Goexit() // as t.FailNow
		}
		return comm.Barrier(ctx, c)
	})
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "t.FailNow") {
		t.Errorf("rank 0: %v", errs[0])
	}
	if !errors.Is(errs[1], comm.ErrRevoked) {
		t.Errorf("rank 1: %v, want ErrRevoked", errs[1])
	}
}

func TestCommThatIsLeftOpenIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where a goroutine left behind is an error
		errs := commtest.Ranks(t.Context(), 2, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
			d, err := c.Dup(ctx)
			if err == nil {
				d.Irecv(0, 0, comm.Of(make([]int, 1)))
				synctestWait(c)
			}
			return err
		})
		for r, err := range errs {
			if err == nil || !strings.Contains(err.Error(), "communicators open") {
				t.Errorf("rank %d: %v", r, err)
			}
		}
	})
}

// A hurried is a recorder whose time is up soon.
type hurried struct {
	recorder
	deadline time.Time
	ctx      context.Context
}

func (h *hurried) Deadline() (time.Time, bool) { return h.deadline, true }
func (h *hurried) Context() context.Context    { return h.ctx }

func TestDeadlockSaysWhoWaitsForWhom(t *testing.T) {
	stress.Slow(t, "it waits for deadlines")
	t.Parallel() // it waits
	// The ranks must have waited for a while when they are looked at, which is once. Where they
	// have not, ctx ends them.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h := &hurried{recorder{TB: t}, time.Now().Add(10 * time.Second), ctx}
	commtest.Run(h, 3, func(ctx context.Context, c *comm.Comm) error {
		x := []int64{1}
		if c.Rank() == 2 {
			_, err := c.Ibarrier().Wait(ctx)
			return err
		}
		_, err := comm.Recv(ctx, c, 1-c.Rank(), 7, x)
		return err
	})
	if len(h.errors) != 4 {
		t.Fatalf("got %q, want who waits for whom and an error of each rank", h.errors)
	}
	for _, want := range []string{
		`wait for each other`,
		`\nrank 0 is in recv\(1 int64, rank 1, tag 7\) at commtest/run_test.go:\d+ for `,
		`\nrank 1 is in recv\(1 int64, rank 0, tag 7\) at commtest/run_test.go:\d+ for `,
		`\nrank 2 is in barrier\(\) number 1 at commtest/run_test.go:\d+ for `,
	} {
		if !regexp.MustCompile(want).MatchString(h.errors[0]) {
			t.Errorf("got %q, want %q", h.errors[0], want)
		}
	}
}

func TestSlowRankIsNoDeadlock(t *testing.T) {
	h := &hurried{recorder{TB: t}, time.Now().Add(time.Second / 2), t.Context()}
	commtest.Run(h, 2, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 0 {
			<-time.After(time.Until(h.deadline)) // busy until its time is up
		}
		return comm.Barrier(ctx, c)
	})
	if len(h.errors) > 0 {
		t.Errorf("got %q, want nothing: one rank was in no call", h.errors)
	}
}

func synctestWait(c *comm.Comm) {
	if c.Rank() == 0 {
		synctest.Wait()
	}
}

func TestClosingTheWorldOneselfIsFine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error {
			return errors.Join(comm.Barrier(ctx, c), c.Close(ctx))
		})
	})
}

func TestRunConfigReachesAllRanks(t *testing.T) {
	rec := &recorder{TB: t}
	commtest.RunConfig(rec, 2, comm.Config{Tuning: "allreduce:nonsense"},
		func(ctx context.Context, c *comm.Comm) error {
			return nil
		})
	if len(rec.errors) != 2 || !strings.Contains(rec.errors[0], "nonsense") {
		t.Errorf("got %q, want a refusal of the tuning", rec.errors)
	}
}

// A job ends with nothing left: goroutines of ranks that died, and of requests
// no rank waited for, included.
func TestNothingIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 20 {
			commtest.Ranks(t.Context(), 4, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
				c.Ibarrier()
				c.Irecv(comm.AnySource, 5, comm.Of(make([]int, 1)))
				c.Issend((c.Rank()+1)%4, 6, comm.Of(make([]int, 1)))
				if c.Rank() == 2 {
					return errors.New("boom")
				}
				return nil
			})
			synctest.Wait()
		}
	})
}
