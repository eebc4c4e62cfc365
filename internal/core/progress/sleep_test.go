package progress_test

import (
	"testing"
	"testing/synctest"
	"time"

	"gompi/internal/core/progress"
	"gompi/internal/world"
)

func newThreadRank(spin, yields int) *rank {
	r := newRankOf(false, &threadBell{over: make(chan struct{})})
	r.SetSpin(spin, yields, true, func() bool { return true }, time.Hour)
	return r
}

// A driver that has polled in vain blocks its thread, and then, in vain for long, sleeps as
// goroutines do. Both end when there is something to poll.
func TestADriverBlocksItsThreadFirst(t *testing.T) {
	for _, inVain := range []bool{false, true} {
		bubble(t, 0, func(t *testing.T) {
			r, w := newThreadRank(2, 3), newWord()
			done := r.start(t.Context(), w)
			synctest.Wait()
			if r.threads.sleeps.Load() != 1 || r.polls > 2+3+1 || get(r, r.Polled) {
				t.Errorf("slept %d times after %d polls: want it asleep after 5", r.threads.sleeps.Load(), r.polls)
			}
			if inVain {
				r.endSleeps()
				synctest.Wait()
				if r.threads.sleeps.Load() != 1 || !r.bell.armed {
					t.Errorf("slept %d times, armed %v: want it parked", r.threads.sleeps.Load(), r.bell.armed)
				}
			}
			r.store(w)
			want(t, done)
		})
	}
}

// A driver that sleeps and is woken by a timer alone, as each StallAfter, polls everything once:
// the timer may be for what does not reach the rank that it waits for. (The clock is synctest's.)
func TestATimerMakesADriverPollOnce(t *testing.T) {
	const ticks = 5
	bubble(t, ticks*progress.StallAfter, func(t *testing.T) {
		r, w := newRank(true), newWord()
		w.Hint = 3
		r.SetSpin(20, 30, true, func() bool { return true }, time.Hour)
		done := r.start(t.Context(), w)
		synctest.Wait()
		before := get(r, func() int { return r.polls })
		time.Sleep(ticks * progress.StallAfter)
		synctest.Wait()
		if polls, stalls := get(r, func() int { return r.polls })-before,
			get(r, func() int { return r.stalls }); stalls != ticks || polls > ticks {
			t.Errorf("%d polls for %d stalls: want %d of each at most", polls, stalls, ticks)
		}
		if hint := get(r, func() world.Rank { return r.hinted }); hint != world.None {
			t.Errorf("it polled first for rank %d, want for all", hint)
		}
		r.store(w)
		want(t, done)
	})
}

// A deadline that comes before the thread would be woken goes by the clock.
func TestADeadlineIsNotSleptOver(t *testing.T) {
	bubble(t, 500*time.Microsecond, func(t *testing.T) {
		r, w := newThreadRank(0, 0), newWord()
		r.onPoll = r.storesAt(w, 500*time.Microsecond)
		want(t, r.start(t.Context(), w))
	})
}

// A goroutine that takes the drive from one whose thread is blocked passes it back, and that is
// woken.
func TestADriveIsHandedToAThreadThatSleeps(t *testing.T) {
	bubble(t, 0, func(t *testing.T) {
		r, first, second := newThreadRank(0, 0), newWord(), newWord()
		waits := r.start(t.Context(), first)
		synctest.Wait()
		second.stored.Store(true)
		want(t, r.start(t.Context(), second))
		synctest.Wait()
		if n := r.threads.sleeps.Load(); n != 1 || get(r, r.Polled) {
			t.Errorf("%d sleeps, polled %v: want the first still asleep", n, r.Polled())
		}
		r.store(first)
		want(t, waits)
	})
}

// A program that tests in a loop where processors are shared polls, then yields, and then sleeps in
// each test, unless one finds something, or it does something else between them. With a processor
// of its own it never sleeps.
func TestTestsInVainSleep(t *testing.T) {
	const yields, awake = 5, 4096
	test := func(r *rank, found int) bool {
		before := r.threads.sleeps.Load()
		r.Lock()
		r.Tested(found)
		r.Unlock()
		return r.threads.sleeps.Load() > before
	}
	rank := func(spin int) *rank {
		r := newThreadRank(spin, yields)
		close(r.threads.over)
		return r
	}
	synctest.Test(t, func(t *testing.T) {
		r := rank(0)
		for i := range awake + 10 {
			if slept := test(r, 0); slept != (i >= awake) {
				t.Fatalf("test %d in vain: slept %v", i, slept)
			}
		}
		if test(r, 1) || test(r, 0) {
			t.Error("it slept although a test had found something")
		}
		r = rank(10)
		for range 2 * awake {
			if test(r, 0) {
				t.Fatal("it slept although it has a processor")
			}
		}
		r = rank(0)
		for range 2 * awake {
			if time.Sleep(50 * time.Microsecond); test(r, 0) {
				t.Fatal("it slept although the program did something else")
			}
		}
	})
}

// The Parker may wake a goroutine that tests in the place of one that has become ready.
func TestATestPassesAWakeUpOn(t *testing.T) {
	bubble(t, 0, func(t *testing.T) {
		r, w := newThreadRank(0, 0), newWord()
		test := func() {
			r.Lock()
			defer r.Exit()
			r.Tested(0)
		}
		for range 4096 {
			test()
		}
		go test()
		synctest.Wait() // asleep first, it is woken first
		waits := r.start(t.Context(), w)
		synctest.Wait()
		get(r, func() bool { r.MakeReady(&w.Waiter); return true })
		want(t, waits)
	})
}
