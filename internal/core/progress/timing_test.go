package progress_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gompi/internal/core/progress"
	"gompi/internal/stress"
	"gompi/internal/world"
)

// Goroutines that wait, give up and begin operations, and others that store what they wait for,
// forget no goroutine. If one were, the clock of the bubble would continue until a timer wakes it.
// It may continue for a moment where all that wait have polled for long.
func TestNoWaiterIsForgottenWithAnyTiming(t *testing.T) {
	for end := stress.Until(t); time.Now().Before(end) && !t.Failed(); {
		seed := rand.Uint64()
		for i, p := range []struct {
			spin, yields int
			threads      bool
		}{{0, 0, false}, {0, 3, false}, {20, 2, false}, {0, 0, false}, {0, 0, true}, {3, 2, true}} {
			synctest.Test(t, func(t *testing.T) {
				r := newRank(false)
				if r.blind = i%2 == 1; p.threads {
					r = newRankOf(false, &threadBell{over: make(chan struct{})})
				}
				r.SetSpin(p.spin, p.yields, true, func() bool { return true }, time.Hour)
				var all sync.WaitGroup
				for i := range 6 {
					rng := rand.New(rand.NewPCG(seed, uint64(i)))
					all.Go(func() { waitOften(t, r, world.Rank(i), rng) })
				}
				all.Wait()
				r.close(t)
			})
		}
	}
}

// waitOften has r wait for words of rank me, that another goroutine stores.
func waitOften(t *testing.T, r *rank, me world.Rank, rng *rand.Rand) {
	pause := func(n int) {
		for range n {
			runtime.Gosched()
		}
	}
	for range 50 {
		w, n, m := newWord(), rng.IntN(8), rng.IntN(8)
		switch rng.IntN(4) {
		case 0: // what no goroutine waits for ends by itself
			w = r.operate(progress.Pending)
			pause(n)
			r.store(w)
			for !get(r, w.Ready) {
				runtime.Gosched()
			}
			continue
		case 1: // who gives up waits again
			ctx, cancel := context.WithCancelCause(t.Context())
			var ended atomic.Bool
			go func() {
				pause(n)
				for cancel(errGaveUp); !ended.Load(); runtime.Gosched() {
					r.endSleeps() // of its thread, which notices the context then
				}
			}()
			if err := waitInTime(ctx, t, r, me, w); !errors.Is(err, errGaveUp) {
				t.Errorf("got %v, want %v", err, errGaveUp)
			}
			ended.Store(true)
		}
		w.Background = m == 0
		go func() { pause(m); r.store(w) }()
		if err := waitInTime(t.Context(), t, r, me, w); err != nil {
			t.Error(err)
		}
		get(r, func() bool { w.Reset(); return true })
	}
}

// waitInTime waits for a word of rank me. The wait takes no time, as all that happens is that
// others run; but grace at most if its goroutine has polled so often that it may be left asleep for
// as long.
func waitInTime(ctx context.Context, t *testing.T, r *rank, me world.Rank, w *word) error {
	const manyPolls, grace = 2048, time.Millisecond
	before, begin := get(r, func() int { return r.polled[me] }), time.Now()
	w.Hint = me
	err := r.wait(ctx, w)
	polls := get(r, func() int { return r.polled[me] }) - before
	if d := time.Since(begin); d != 0 && (d > grace || polls < manyPolls) {
		t.Errorf("a wait took %v after %d polls: want 0s, or %v at most after %d", d, polls, grace, manyPolls)
	}
	return err
}
