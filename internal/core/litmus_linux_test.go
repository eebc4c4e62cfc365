package core_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/comm"
	"gompi/comm/window"
	"gompi/internal/boot"
	"gompi/internal/core/layout"
	"gompi/internal/core/rma"
	"gompi/internal/mem"
	"gompi/internal/stress"
)

// What ranks may see of each other's operations: small programs that find the wrong outcome if it
// ever happens. To look for it for long: go test ./internal/core -run TestLitmus -litmus 10m

var litmusFor = flag.Duration("litmus", 200*time.Millisecond, "how long each litmus test runs")

// A litmus is a test of round number i, of two ranks or more. All ranks synchronize between rounds.
type litmus func(ctx context.Context, c *comm.Comm, w *window.Window, i int64) error

// repeatedly runs rounds until the time is over, with 16 zeroed elements on each rank.
func repeatedly(make windowMaker, l litmus) rankFunc {
	return func(ctx context.Context, c *comm.Comm) error {
		w, _, _, err := make(ctx, c, 16)
		if err != nil {
			return err
		}
		began, over := time.Now(), []bool{false}
		for i := int64(1); !over[0]; i++ {
			if err := l(ctx, c, w, i); err != nil {
				return fmt.Errorf("round %d: %w", i, err)
			}
			over[0] = time.Since(began) > *litmusFor
			if err := errors.Join(c.Barrier(ctx), comm.Bcast(ctx, c, 0, over)); err != nil {
				return err
			}
		}
		return w.Free(ctx)
	}
}

// litmusTest runs l on all settings and kinds of memory.
func litmusTest(t *testing.T, l litmus) {
	stress.Slow(t, "it looks for rare orders of stores")
	for _, kind := range []string{"allocated", "created"} {
		all := settings
		if kind == "allocated" {
			all = append(slices.Clone(settings), byDevice)
		}
		for _, f := range all {
			if f.misjudged(kind) {
				continue
			}
			t.Run(kind+"/"+f.name, func(t *testing.T) {
				if err := errors.Join(f.run(t, repeatedly(windowMakers[kind], l))...); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// one is a buffer of one element.
func one(x int64) comm.Buffer { return comm.Of([]int64{x}) }

// Rank 0 puts data to rank 1, flushes, and raises a flag there; rank 2 gets the data when it has
// seen the flag, and rank 1 loads it.
func TestLitmusMessagePassing(t *testing.T) {
	litmusTest(t, func(ctx context.Context, c *comm.Comm, w *window.Window, i int64) error {
		if c.Rank() > 2 {
			return nil
		}
		if err := w.RLock(ctx, 1); err != nil {
			return err
		}
		if c.Rank() == 0 {
			data := make([]int64, 8)
			for k := range data {
				data[k] = i
			}
			return errors.Join(w.Put(1, 0, comm.Of(data)), w.Flush(ctx, 1), w.Accumulate(1, 8, one(i), window.Replace),
				w.Unlock(ctx, 1))
		}
		for flag := []int64{0}; flag[0] != i; {
			if err := errors.Join(w.FetchAndOp(1, 8, comm.Buffer{}, comm.Of(flag), window.NoOp), w.Flush(ctx, 1),
				ctx.Err()); err != nil {
				return err
			}
			runtime.Gosched() // rank 0 may need this processor
		}
		data := make([]int64, 8)
		if err := errors.Join(w.Get(1, 0, comm.Of(data)), w.Unlock(ctx, 1)); err != nil {
			return err
		}
		for k, x := range data {
			if x != i {
				return fmt.Errorf("element %d is %d behind the flag, want %d", k, x, i)
			}
		}
		return nil
	})
}

// All ranks add to a counter under an exclusive lock, by Get and Put.
func TestLitmusLocks(t *testing.T) {
	litmusTest(t, func(ctx context.Context, c *comm.Comm, w *window.Window, i int64) error {
		const each = 10
		x := []int64{0}
		for range each {
			err := errors.Join(w.Lock(ctx, 2), w.Get(2, 3, comm.Of(x)), w.Flush(ctx, 2), w.Put(2, 3, one(x[0]+1)),
				w.Unlock(ctx, 2))
			if err != nil {
				return err
			}
		}
		return counted(ctx, c, w, 2, 3, i*each*int64(c.Size()))
	})
}

// counted waits for all ranks, and compares an element.
func counted(ctx context.Context, c *comm.Comm, w *window.Window, rank, at int, want int64) error {
	got := []int64{0}
	err := errors.Join(c.Barrier(ctx), w.RLock(ctx, rank), w.Get(rank, at, comm.Of(got)), w.Unlock(ctx, rank),
		c.Barrier(ctx))
	if err == nil && got[0] != want {
		err = fmt.Errorf("the counter is at %d, want %d", got[0], want)
	}
	return err
}

// All ranks add to counters without a lock: by CompareAndSwap, FetchAndOp and Accumulate.
func TestLitmusAtomics(t *testing.T) {
	litmusTest(t, func(ctx context.Context, c *comm.Comm, w *window.Window, i int64) error {
		if err := w.LockAll(ctx); err != nil {
			return err
		}
		old := []int64{0}
		for range 5 {
			for guess := int64(-1); guess != old[0]; {
				guess = old[0]
				err := errors.Join(w.CompareAndSwap(1, 5, one(guess+1), one(guess), comm.Of(old)), w.Flush(ctx, 1))
				if err != nil {
					return err
				}
			}
			if err := errors.Join(w.FetchAndOp(1, 5, one(1), comm.Of(old), comm.Sum),
				w.Accumulate(1, 5, one(1), comm.Sum), w.Flush(ctx, 1)); err != nil {
				return err
			}
		}
		if err := w.UnlockAll(ctx); err != nil {
			return err
		}
		return counted(ctx, c, w, 1, 5, i*5*3*int64(c.Size()))
	})
}

// Elements that no instruction combines.
func TestAccumulatesOfAnyTypeAreAtomic(t *testing.T) {
	onSettings(t, func(ctx context.Context, c *comm.Comm) error {
		return errors.Join(accumulated[int16](ctx, c, 100), accumulated[uint8](ctx, c, 50),
			accumulated[float32](ctx, c, 100),
			accumulated[float64](ctx, c, 100), accumulated[complex128](ctx, c, 100), accumulated[int32](ctx, c, 100))
	})
}

// accumulated has all ranks add 1 to some elements of all parts a number of times.
func accumulated[T int16 | uint8 | int32 | float32 | float64 | complex128](ctx context.Context, c *comm.Comm,
	times int) error {
	w, mine, err := window.Allocate[T](ctx, c, 7)
	if err != nil {
		return err
	}
	if err := w.Fence(ctx); err != nil {
		return err
	}
	ones := []T{1, 1, 1}
	for range times {
		for to := range c.Size() {
			if err := w.Accumulate(to, 3, comm.Of(ones), comm.Sum); err != nil {
				return err
			}
		}
	}
	if err := w.Fence(ctx); err != nil {
		return err
	}
	var n T
	for range times * c.Size() {
		n++
	}
	if e := equal("sums", mine, []T{0, 0, 0, n, n, n, 0}); e != nil {
		return fmt.Errorf("%T: %w", n, e)
	}
	return w.Free(ctx)
}

// A pair takes one lock or none.
func TestLocOfAWindowIsOneElement(t *testing.T) {
	onSettings(t, func(ctx context.Context, c *comm.Comm) error {
		w, mine, err := window.Allocate[comm.Loc[float64]](ctx, c, 1)
		if err != nil {
			return err
		}
		err = errors.Join(err, w.Fence(ctx))
		for i := range 50 {
			x := comm.Loc[float64]{Value: float64(i * (1 + c.Rank())), Index: int64(c.Rank())}
			err = errors.Join(err, w.Accumulate(0, 0, comm.Of([]comm.Loc[float64]{x}), comm.MaxLoc))
		}
		err = errors.Join(err, w.Fence(ctx))
		if want := (comm.Loc[float64]{Value: 49 * 4, Index: 3}); c.Rank() == 0 && mine[0] != want {
			err = errors.Join(err, fmt.Errorf("got %v, want %v", mine[0], want))
		}
		return errors.Join(err, w.Free(ctx))
	})
}

// Rows of a matrix that are put as a column, and requests of all operations.
func TestWindowRequestsAndLayouts(t *testing.T) {
	onSettings(t, func(ctx context.Context, c *comm.Comm) error {
		w, mine, err := window.Allocate[int64](ctx, c, 600)
		if err != nil {
			return err
		}
		next := (c.Rank() + 1) % c.Size()
		matrix := make([]int64, 600)
		for i := range matrix {
			matrix[i] = int64(i)
		}
		column, err := comm.Vector(300, 1, 2)
		if err != nil {
			return err
		}
		every, err := comm.Lay(matrix, column)
		if err != nil {
			return err
		}
		got, old := make([]int64, 300), make([]int64, 300)
		start := func(r comm.Request, err error) error {
			if err != nil {
				return err
			}
			_, err = r.Wait(ctx)
			return err
		}
		err = errors.Join(w.LockAll(ctx), start(w.Rput(next, 10, every)), w.Flush(ctx, next),
			start(w.Raccumulate(next, 10, every, comm.Sum)),
			start(w.RgetAccumulate(next, 10, every, comm.Of(old), comm.Sum)))
		if err != nil {
			return err
		}
		for i := range old { // the request is complete
			if x := int64(2 * i); old[i] != 2*x {
				return fmt.Errorf("element %d: %d before, want %d", i, old[i], 2*x)
			}
		}
		err = errors.Join(start(w.Rget(next, 10, comm.Of(got))), w.UnlockAll(ctx), c.Barrier(ctx))
		if err != nil {
			return err
		}
		for i := range got {
			if x := int64(2 * i); got[i] != 3*x || old[i] != 2*x || mine[10+i] != 3*x {
				return fmt.Errorf("element %d: got %d, before %d, and here %d, want %d, %d, %d", i, got[i], old[i],
					mine[10+i], 3*x, 2*x, 3*x)
			}
		}
		return w.Free(ctx)
	})
}

// A request of more pieces than a message has room for is complete when all are.
func TestRequestsOfManyRunsAreOfAllTheirElements(t *testing.T) {
	onSettings(t, func(ctx context.Context, c *comm.Comm) error {
		const rows = 300
		w, mine, err := window.Allocate[int64](ctx, c, 2*rows)
		if err != nil {
			return err
		}
		element, in, sum := layout.Run(8), insideWindow(w), rma.Of(comm.Sum, mem.I64)
		column := rma.Target{Rank: (c.Rank() + 1) % c.Size(), At: 8, Layout: element.Times(rows, 16)}
		x, got, old := make([]int64, rows), make([]int64, rows), make([]int64, rows)
		for i := range x {
			x[i] = int64(i) + 1
		}
		wait := func(start func(keep rma.Keep) error) error {
			r, err := in.Requested(start)
			return errors.Join(err, second(r.Wait(ctx)))
		}
		err = errors.Join(w.LockAll(ctx),
			wait(func(keep rma.Keep) error { return in.Put(column, comm.Of(x), keep) }),
			wait(func(keep rma.Keep) error { return in.Get(column, comm.Of(got), keep) }),
			equal("elements of Get", got, x),
			wait(func(keep rma.Keep) error { return in.Accumulate(column, comm.Of(x), sum, keep) }),
			wait(func(keep rma.Keep) error { return in.GetAccumulate(column, comm.Of(x), comm.Of(old), sum, keep) }))
		if err != nil {
			return err
		}
		for i := range old {
			if want := 2 * x[i]; old[i] != want {
				return fmt.Errorf("element %d: %d before, want %d", i, old[i], want)
			}
		}
		if err := errors.Join(w.UnlockAll(ctx), c.Barrier(ctx)); err != nil {
			return err
		}
		for i, v := range mine {
			if want := int64(i%2) * 3 * int64(i/2+1); v != want {
				return fmt.Errorf("element %d of the part is %d, want %d", i, v, want)
			}
		}
		return w.Free(ctx)
	})
}

func TestRunsOfATargetAreInsideItsPart(t *testing.T) {
	onSettings(t, func(ctx context.Context, c *comm.Comm) error {
		w, mine, err := window.Allocate[int64](ctx, c, 6)
		if err != nil {
			return err
		}
		column, again, two := stridedOf(w, 8, 0, 2, 4), stridedOf(w, 8, 0, 0), make([]int64, 2)
		three := comm.Of(make([]int64, 3))
		for _, refused := range []struct {
			err  error
			want string
		}{
			{column.Put(1, 2, three), "bytes 16 to 56 of the part of rank 1: want them inside its 48"},
			{column.Get(1, 2, three), "bytes 16 to 56 of the part of rank 1"},
			{column.Accumulate(1, 2, three, comm.Sum), "bytes 16 to 56 of the part of rank 1"},
			{column.GetAccumulate(1, 2, three, three, comm.Sum), "bytes 16 to 56 of the part of rank 1"},
			{column.Put(1, -1, three), "bytes -8 to 32 of the part of rank 1"},
			{w.Put(1, -1, three), "place -1: want 0 to"},
			{w.Put(1, 1<<61, three), "place 2305843009213693952: want 0 to"},
			{column.Put(4, 0, three), "rank 4: want 0 to 3"},
			{column.Put(1, 0, comm.Of(two)), "16 bytes, and 24 at the target: want the same number"},
			{w.GetAccumulate(1, 0, three, comm.Of(two), comm.Sum), "a result of 16 bytes: want 24"},
			{w.Put(1, 0, comm.Of([]float64{1, 2, 3})), "elements of float64 in a window of int64"},
			{second(w.Rput(1, -1, three)), "rput: bad argument: place -1"},
			{second(w.RgetAccumulate(1, 0, three, comm.Of(two), comm.Sum)), "rgetaccumulate: bad argument: a result"},
		} {
			if !errors.Is(refused.err, comm.ErrArgument) || !strings.Contains(refused.err.Error(), refused.want) {
				return fmt.Errorf("%v, want %q", refused.err, refused.want)
			}
		}
		next, got := (c.Rank()+1)%c.Size(), []int64{0, 0}
		err = errors.Join(w.Fence(ctx), column.Put(next, 1, comm.Of([]int64{7, 8, 9})), w.Fence(ctx),
			again.Get(next, 3, comm.Of(got)), w.Fence(ctx), equal("the element that is named twice", got, []int64{8, 8}))
		return errors.Join(err, equal("the part", mine, []int64{0, 7, 0, 8, 0, 9}), w.Free(ctx))
	})
}

func TestWindowsRefuseWhatIsOutsideOrOfAnotherType(t *testing.T) {
	onSettings(t, func(ctx context.Context, c *comm.Comm) error {
		w, _, err := window.Allocate[int64](ctx, c, 4)
		if err != nil {
			return err
		}
		for name, err := range map[string]error{
			"behind the end":      w.Put(1, 3, comm.Of(make([]int64, 2))),
			"before the start":    w.Get(1, -1, one(0)),
			"another rank":        w.Put(4, 0, one(0)),
			"another type":        w.Put(1, 0, comm.Of([]float64{1})),
			"no such operator":    w.Accumulate(1, 0, one(1), comm.Avg),
			"no lock":             w.Unlock(ctx, 1),
			"no start":            w.Complete(ctx),
			"no post":             w.Wait(ctx),
			"two elements":        w.FetchAndOp(1, 0, comm.Of(make([]int64, 2)), comm.Of(make([]int64, 2)), comm.Sum),
			"a result of another": w.GetAccumulate(1, 0, one(1), comm.Of(make([]int64, 2)), comm.Sum),
		} {
			if !errors.Is(err, comm.ErrArgument) {
				return fmt.Errorf("%s: %v, want ErrArgument", name, err)
			}
		}
		return errors.Join(w.Put(comm.ProcNull, 9, one(1)), w.Fence(ctx), w.Free(ctx))
	})
}

// The rank that holds a lock dies: those that wait for it learn that.
func TestDeathEndsWaitsForALock(t *testing.T) {
	for _, f := range settings {
		t.Run(f.name, func(t *testing.T) {
			errs := f.run(t, func(ctx context.Context, c *comm.Comm) error {
				w, _, err := window.Allocate[int64](ctx, c, 1)
				if err != nil {
					return err
				}
				over, cancel := context.WithCancel(ctx)
				cancel()
				if c.Rank() == 3 {
					defer w.Comm().Close(over)
					err := errors.Join(w.Lock(ctx, 1), c.Barrier(ctx))
					inside(c).Launcher().(*boot.Member).Die("killed by signal 9")
					return err
				}
				defer w.Free(over) // in a goroutine's rank that is left open something would go on
				return errors.Join(c.Barrier(ctx), w.RLock(ctx, 1))
			})
			for r, err := range errs[:3] {
				if !errors.Is(err, comm.ErrRevoked) || !strings.Contains(err.Error(), "window rlock") ||
					!strings.Contains(err.Error(), "killed by signal 9") {
					t.Errorf("rank %d: %v, want ErrRevoked of rank 3 in window rlock", r, err)
				}
			}
		})
	}
}

// A wait for a lock that is given up breaks the window, and not the communicator it was made of.
func TestContextThatEndsAWaitForALockBreaksTheWindow(t *testing.T) {
	onSettings(t, func(ctx context.Context, c *comm.Comm) error {
		w, _, err := window.Allocate[int64](ctx, c, 1)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			err = w.Lock(ctx, 0)
		}
		if err := errors.Join(err, c.Barrier(ctx)); err != nil {
			return err
		}
		if c.Rank() == 1 {
			short, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			if err := w.Lock(short, 0); !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("the wait ended with %v, want the deadline", err)
			}
		}
		if err := c.Barrier(ctx); err != nil {
			return fmt.Errorf("the communicator: %w", err)
		}
		if err := w.Fence(ctx); !errors.Is(err, comm.ErrRevoked) {
			return fmt.Errorf("a fence of the broken window: %v, want ErrRevoked", err)
		}
		if err := w.Free(ctx); !errors.Is(err, comm.ErrRevoked) {
			return fmt.Errorf("to free the broken window: %v, want ErrRevoked", err)
		}
		return nil
	})
}
