package progress_test

import (
	"bytes"
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"gompi/internal/core/progress"
)

func TestNewsWakeWhoSleeps(t *testing.T) {
	bubble(t, 0, func(t *testing.T) {
		r, w := newRank(false), newWord()
		done := r.start(t.Context(), w)
		synctest.Wait()
		if !get(r, r.Driven) || get(r, r.Polled) || r.polls > 1 {
			t.Errorf("driven %v, polled %v, %d times: want it parked", r.Driven(), r.Polled(), r.polls)
		}
		r.store(w)
		want(t, done)
		if r.Driven() {
			t.Error("it has kept the drive")
		}
	})
}

// What comes before anybody waits is found without sleeping.
func TestNewsThatAreThereEndAWaitAtOnce(t *testing.T) {
	bubble(t, 0, func(t *testing.T) {
		r, w := newRank(false), newWord()
		r.store(w)
		if err := r.wait(t.Context(), w); err != nil || r.polls != 1 {
			t.Errorf("got %v after %d polls", err, r.polls)
		}
	})
}

// Whichever of several that sleep the news is for, that one and no other is woken.
func TestNewsEndTheWaitThatTheyAreFor(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		bubble(t, 0, func(t *testing.T) {
			r := newRank(false)
			var words []*word
			var waits []<-chan error
			for i := range 3 {
				words = append(words, newWord())
				waits = append(waits, r.start(t.Context(), words[i]))
				synctest.Wait()
			}
			for n, i := range order {
				r.store(words[i])
				want(t, waits[i])
				synctest.Wait()
				for _, j := range order[n+1:] {
					going(t, waits[j])
				}
			}
		})
	}
}

// A goroutine that begins to wait drives in the place of one that is parked, which it leaves
// parked without having run.
func TestWhoLeavesParksTheSleeperInItsPlace(t *testing.T) {
	bubble(t, 0, func(t *testing.T) {
		r, first, second := newRank(false), newWord(), newWord()
		waits := r.start(t.Context(), first)
		synctest.Wait()
		second.stored.Store(true) // and the bell has not rung yet
		if err := r.wait(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		polls := get(r, func() int { return r.polls })
		synctest.Wait()
		if n := get(r, func() int { return r.polls }); n != polls || !r.Driven() || r.Polled() {
			t.Errorf("polled %d times more, driven %v, polled %v: want it parked", n-polls, r.Driven(), r.Polled())
		}
		r.store(first)
		want(t, waits)
	})
}

// Others that poll disarm the source of one that is parked.
func TestPollingDoesNotDeafenOneThatSleeps(t *testing.T) {
	bubble(t, 0, func(t *testing.T) {
		r, w := newRank(false), newWord()
		done := r.start(t.Context(), w)
		synctest.Wait()
		r.Lock()
		r.Poll(-1)
		r.Exit()
		r.store(w)
		want(t, done)
	})
}

// One that sleeps can be given the drive while it gives up: it passes it on.
func TestWhoGivesUpPassesOnADriveJustGiven(t *testing.T) {
	for range 100 {
		bubble(t, 0, func(t *testing.T) {
			r, first, second, third := newRank(false), newWord(), newWord(), newWord()
			ctx, cancel := context.WithCancelCause(t.Context())
			gives := r.start(ctx, first)
			synctest.Wait()
			r.onPoll = func() int {
				cancel(errGaveUp)
				r.MakeReady(&second.Waiter)
				return 1
			}
			if err := r.wait(t.Context(), second); err != nil {
				t.Error(err)
			}
			if err := <-gives; err != errGaveUp {
				t.Errorf("got %v, want %v", err, errGaveUp)
			}
			r.onPoll = nil
			done := r.start(t.Context(), third)
			synctest.Wait()
			r.store(third)
			want(t, done)
		})
	}
}

func TestASleeperTakesOverFromADriverThatReturns(t *testing.T) {
	bubble(t, 0, func(t *testing.T) {
		r, first, second := newRank(false), newWord(), newWord()
		r.SetSpin(0, 1<<30, true, nil, 0)
		driver := r.start(t.Context(), first)
		r.polling(1)
		sleeper := r.start(t.Context(), second)
		r.polling(2)
		r.store(first)
		want(t, driver)
		r.polling(1)
		r.store(second)
		want(t, sleeper)
	})
}

// Who drives, who sleeps, and who is kept from sleeping by news of others, returns when its
// context ends, and the others continue.
func TestAContextEndsAWait(t *testing.T) {
	for _, drives := range []bool{true, false} {
		bubble(t, 0, func(t *testing.T) {
			r, gives, stays := newRank(false), newWord(), newWord()
			ctx, cancel := context.WithCancelCause(t.Context())
			var gone, other <-chan error
			if drives {
				other = r.start(t.Context(), stays)
				synctest.Wait()
			}
			gone = r.start(ctx, gives)
			synctest.Wait()
			if !drives {
				other = r.start(t.Context(), stays)
				synctest.Wait()
			}
			cancel(errGaveUp)
			if err := <-gone; err != errGaveUp {
				t.Errorf("drives %v: got %v, want %v", drives, err, errGaveUp)
			}
			synctest.Wait()
			going(t, other)
			r.store(stays)
			want(t, other)
		})
	}
	bubble(t, 0, func(t *testing.T) {
		r, w := newRank(false), newWord()
		r.onPoll = func() int { return 1 }
		ctx, cancel := context.WithCancelCause(t.Context())
		done := r.start(ctx, w)
		r.polling(1)
		cancel(errGaveUp)
		if err := <-done; err != errGaveUp {
			t.Errorf("polls: got %v, want %v", err, errGaveUp)
		}
	})
}

func TestTheSourcesDeadlineWakesTheParkedDriver(t *testing.T) {
	const due = 50 * time.Millisecond
	for _, known := range []bool{true, false} {
		bubble(t, due, func(t *testing.T) {
			r, w := newRank(false), newWord()
			r.onPoll = func() int { return 0 }
			if known {
				r.onPoll = r.storesAt(w, due)
			}
			done := r.start(t.Context(), w)
			synctest.Wait()
			r.Lock()
			if r.onPoll = r.storesAt(w, due); !known {
				r.Shorten()
			}
			r.Unlock()
			want(t, done)
		})
	}
}

// One that sleeps without a bound is not left to drive when there is one.
func TestTheSourcesDeadlineWakesASleeperThatIsGivenTheDrive(t *testing.T) {
	const due = 50 * time.Millisecond
	bubble(t, due, func(t *testing.T) {
		r, first, second := newRank(false), newWord(), newWord()
		done := r.start(t.Context(), first)
		synctest.Wait()
		r.onPoll = r.storesAt(first, due)
		second.stored.Store(true)
		if err := r.wait(t.Context(), second); err != nil {
			t.Error(err)
		}
		want(t, done)
	})
}

// The background polls for operations that no goroutine waits for: for those that have to be, at
// once, for others after a while.
func TestOperationsAreDrivenForInTheBackground(t *testing.T) {
	const grace = time.Millisecond
	bubble(t, grace, func(t *testing.T) {
		r := newRank(false)
		defer r.close(t)
		for _, c := range []progress.Class{progress.Pending, progress.Deferred, progress.Pending} {
			w := r.operate(c)
			synctest.Wait()
			if got := get(r, r.Driven); got != (c == progress.Pending) {
				t.Errorf("class %v: driven at once: %v", c, got)
			}
			if c == progress.Deferred {
				time.Sleep(grace)
				synctest.Wait()
			}
			r.store(w)
			synctest.Wait()
			if !get(r, w.Ready) || r.Driven() {
				t.Errorf("class %v: ended %v, still driven %v", c, w.Ready(), r.Driven())
			}
		}
	})
}

// Receives that end within their grace make it longer for those that come after; one that does not
// makes it short again.
func TestTheGraceGrowsWhereItEndsInVain(t *testing.T) {
	const grace = time.Millisecond
	bubble(t, (1+2+4+8+16+16+32+1)*grace, func(t *testing.T) {
		r := newRank(false)
		defer r.close(t)
		end := func(w *word) {
			r.Lock()
			defer r.Exit()
			w.stored.Store(true)
			r.Poll(0)
		}
		for _, d := range []time.Duration{1, 2, 4, 8, 16, 16} {
			first := r.operate(progress.Deferred)
			time.Sleep(d * grace / 2)
			end(first)
			second := r.operate(progress.Deferred)
			time.Sleep(d * grace / 2)
			synctest.Wait()
			if get(r, r.Driven) {
				t.Errorf("driven after half of a grace of %v", d*grace)
			}
			end(second)
		}
		for _, d := range []time.Duration{2 * 16, 1} { // the first begins where the timer runs already
			w := r.operate(progress.Deferred)
			time.Sleep(d * grace)
			synctest.Wait()
			if !get(r, r.Driven) {
				t.Errorf("not driven after %v", d*grace)
			}
			r.store(w)
			synctest.Wait()
		}
	})
}

// One that has slept for long is not given the drive at once by one that goes, and mostly comes
// again; one that has just gone to sleep is.
func TestASleeperIsGivenTheDriveAfterAWhile(t *testing.T) {
	const grace = time.Millisecond
	for _, slept := range []time.Duration{grace, grace / 2} {
		bubble(t, slept+grace, func(t *testing.T) {
			r, first, second := newRank(false), newWord(), newWord()
			done := r.start(t.Context(), first)
			synctest.Wait()
			time.Sleep(slept)
			second.stored.Store(true)
			if err := r.wait(t.Context(), second); err != nil {
				t.Error(err)
			}
			if got, want := get(r, r.Driven), slept < grace; got != want {
				t.Errorf("after %v of sleep: driven at once: %v, want %v", slept, got, want)
			}
			time.Sleep(grace)
			synctest.Wait()
			if !get(r, r.Driven) {
				t.Errorf("after %v of sleep: no goroutine drives", slept)
			}
			r.store(first)
			want(t, done)
		})
	}
}

// Where several sleep, one that has just gone to sleep is given the drive at once, although another
// has slept for long.
func TestASleeperIsGivenTheDriveBeforeOneThatWaitsLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, first, second, third := newRank(false), newWord(), newWord(), newWord()
		one := r.start(t.Context(), first)
		synctest.Wait()
		time.Sleep(time.Millisecond)
		two := r.start(t.Context(), second)
		synctest.Wait()
		third.stored.Store(true)
		if err := r.wait(t.Context(), third); err != nil {
			t.Error(err)
		}
		if !get(r, r.Driven) {
			t.Error("no goroutine drives")
		}
		r.store(second)
		want(t, two)
		r.store(first)
		want(t, one)
	})
}

// Who comes takes the drive from one that has polled for long, and so mostly for others.
func TestWhoComesTakesTheDriveFromOneThatWaitsLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, first, second := newRank(false), newWord(), newWord()
		r.SetSpin(0, 1<<30, true, nil, 0)
		first.Hint, second.Hint = 1, 2
		one := r.start(t.Context(), first)
		for get(r, func() bool { return r.polls < 5000 }) {
			runtime.Gosched()
		}
		two := r.start(t.Context(), second)
		for get(r, func() bool { return r.hinted != second.Hint }) {
			runtime.Gosched()
		}
		going(t, one, two)
		r.store(second)
		want(t, two)
		r.store(first)
		want(t, one)
	})
}

// The background leaves the drive to one that waits, and takes it back.
func TestTheBackgroundDrivesWhenNoGoroutineWaits(t *testing.T) {
	bubble(t, 0, func(t *testing.T) {
		r, w := newRank(false), newWord()
		r.blind = true // and the background listens to the bell, too
		defer r.close(t)
		op := r.operate(progress.Pending)
		synctest.Wait()
		done := r.start(t.Context(), w)
		synctest.Wait()
		r.store(w)
		want(t, done)
		synctest.Wait()
		r.store(op)
		synctest.Wait()
		if !get(r, op.Ready) {
			t.Error("no goroutine has polled for the operation")
		}
	})
}

// The background does not poll when another goroutine waits, which is woken to.
func TestWhoWaitsPollsInThePlaceOfTheBackground(t *testing.T) {
	bubble(t, 0, func(t *testing.T) {
		r, w := newRank(false), newWord()
		r.SetSpin(0, 1<<30, true, nil, 0)
		inBackground := false
		r.onPoll = func() int {
			inBackground = bytes.Contains(debug.Stack(), []byte("runBackground"))
			return 0
		}
		op := r.operate(progress.Pending)
		r.polling(1)
		done := r.start(t.Context(), w)
		r.polling(2)
		for get(r, func() bool { return inBackground }) {
			runtime.Gosched()
		}
		r.store(w)
		want(t, done)
		r.store(op)
		r.close(t)
	})
}

// One that has slept for long is not woken to poll for an operation: the background is.
func TestTheBackgroundPollsInThePlaceOfOneThatWaitsLong(t *testing.T) {
	const grace = time.Millisecond
	bubble(t, 2*grace, func(t *testing.T) { // the second passes before the sleeper is given the drive
		r, long, short := newRank(false), newWord(), newWord()
		done := r.start(t.Context(), long)
		synctest.Wait()
		time.Sleep(grace)
		op := r.operate(progress.Pending)
		short.stored.Store(true)
		if err := r.wait(t.Context(), short); err != nil { // which takes the drive, and gives it away
			t.Error(err)
		}
		synctest.Wait()
		var poller []byte
		get(r, func() int {
			r.onPoll = func() int { poller = debug.Stack(); return 0 }
			return 0
		})
		r.store(op)
		synctest.Wait()
		if !get(r, op.Ready) || !bytes.Contains(poller, []byte("runBackground")) {
			t.Errorf("the operation has ended: %v, polled for by\n%s", op.Ready(), poller)
		}
		going(t, done)
		r.store(long)
		want(t, done)
		r.close(t)
	})
}

// Who has waited for long and is woken, here by its Check, takes the drive from one that is parked
// if it waits in the background.
func TestALongWaitTakesTheDriveInTheBackgroundOnly(t *testing.T) {
	for _, background := range []bool{false, true} {
		bubble(t, progress.CheckAfter, func(t *testing.T) {
			r, long, parked := newRank(false), newWord(), newWord()
			long.Hint, long.Background, parked.Hint, parked.Background = 1, background, 2, true
			ctx := progress.WithCheck(t.Context(), func(time.Duration) (time.Duration, error) {
				get(r, func() int { clear(r.polled); return 0 })
				return 0, nil
			})
			first := r.start(ctx, long)
			synctest.Wait()
			second := r.start(t.Context(), parked)
			time.Sleep(progress.CheckAfter) // by the bubble's clock: no real time
			synctest.Wait()
			if got := get(r, func() bool { return r.polled[1] > 0 }); got != background {
				t.Errorf("in the background %v: has polled %v", background, got)
			}
			going(t, first, second)
			r.store(long)
			r.store(parked)
			want(t, first, second)
		})
	}
}

func TestCloseWaitsUntilClosedOrItsContextEnds(t *testing.T) {
	const late = 120 * time.Millisecond
	bubble(t, 2*late, func(t *testing.T) {
		r, begin := newRank(false), time.Now()
		r.Lock()
		defer r.Unlock()
		if err := r.Close(t.Context(), func() bool {
			r.deadline = late - time.Since(begin)
			return r.deadline <= 0
		}); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), late, errGaveUp)
		defer cancel()
		r.deadline = 0
		if err := r.Close(ctx, func() bool { return false }); err != errGaveUp {
			t.Errorf("got %v, want %v", err, errGaveUp)
		}
	})
}

// A grace that ends while the Engine closes begins no background, which nothing would end.
func TestACloseBeginsNoBackground(t *testing.T) {
	bubble(t, 0, func(t *testing.T) {
		r := newRank(false)
		r.Lock()
		defer r.Unlock()
		r.Begin(progress.Pending)
		if err := r.Close(t.Context(), func() bool { r.PassDrive(); return true }); err != nil {
			t.Error(err)
		}
	})
}

// Of a long wait its owner is told once, the source once or again and again, whether its goroutine
// drives or sleeps.
func TestALongWaitIsReported(t *testing.T) {
	const ticks = 5
	for _, watch := range []bool{false, true} {
		bubble(t, ticks*progress.StallAfter+time.Millisecond, func(t *testing.T) {
			r, words := newRank(watch), []*word{newWord(), newWord()}
			waits := []<-chan error{r.start(t.Context(), words[0]), r.start(t.Context(), words[1])}
			time.Sleep(ticks*progress.StallAfter + time.Millisecond)
			synctest.Wait()
			times := 1
			if watch {
				times = ticks
			}
			for i, w := range words {
				if w.stalled != 1 || w.ended != 0 {
					t.Errorf("watch %v: waiter %d was told %d times, want once; of its end %d times", watch, i,
						w.stalled, w.ended)
				}
				r.store(w)
			}
			want(t, waits...)
			if r.stalls != 2*times || words[0].ended != 1 || words[1].ended != 1 {
				t.Errorf("watch %v: the source was told %d times, want %d; the end %d and %d times",
					watch, r.stalls, 2*times, words[0].ended, words[1].ended)
			}
		})
	}
}

// What is told of a long wait may end it, also where the driver would park next.
func TestAWaitThatEndsWhileItIsReportedDoesNotPark(t *testing.T) {
	bubble(t, 300*time.Millisecond, func(t *testing.T) {
		r, w := newRank(false), newWord()
		const look = 8192 // the second poll at which the driver looks at the clock
		r.SetSpin(look-1, 0, true, func() bool { return true }, time.Hour)
		r.onPoll = func() int {
			if r.polls == look-100 {
				time.Sleep(300 * time.Millisecond)
			}
			return 0
		}
		r.onStall = func() { r.MakeReady(&w.Waiter) }
		if err := r.wait(t.Context(), w); err != nil || r.stalls != 1 || r.polls != look {
			t.Errorf("%v after %d polls, told %d times: want %d, once", err, r.polls, r.stalls, look)
		}
	})
}

// No Owner is notified of a short wait's end.
func TestAShortWaitIsNotReported(t *testing.T) {
	bubble(t, progress.StallAfter/2, func(t *testing.T) {
		r, w := newRank(true), newWord()
		done := r.start(t.Context(), w)
		time.Sleep(progress.StallAfter / 2)
		r.store(w)
		if want(t, done); w.stalled != 0 || w.ended != 0 || r.stalls != 0 {
			t.Errorf("told %d times, of its end %d times, the source %d times", w.stalled, w.ended, r.stalls)
		}
	})
}

// The source is told of the background only if it watches.
func TestALongWaitOfTheBackgroundIsReportedToItsWatcher(t *testing.T) {
	const ticks = 3
	for watch, times := range map[bool]int{false: 0, true: ticks} {
		bubble(t, ticks*progress.StallAfter, func(t *testing.T) {
			r := newRank(watch)
			w := r.operate(progress.Pending)
			time.Sleep(ticks * progress.StallAfter)
			synctest.Wait()
			if n := get(r, func() int { return r.stalls }); n != times {
				t.Errorf("watch %v: told %d times, want %d", watch, n, times)
			}
			r.store(w)
			r.close(t)
		})
	}
}

// A driver that news of others keep from blocking is told of once in StallAfter, however
// often it polls: once it has blocked, too.
func TestALongWaitThatNeverBlocksIsReportedAtIntervals(t *testing.T) {
	const poll, times = 10 * time.Microsecond, 5
	synctest.Test(t, func(t *testing.T) {
		r, w, begin := newRank(false), newWord(), time.Now()
		ctx, cancel := context.WithTimeoutCause(t.Context(), (2*times+1)*progress.StallAfter, errGaveUp)
		defer cancel()
		r.onPoll = func() int {
			if time.Since(begin) < progress.StallAfter {
				return 0 // it blocks
			}
			time.Sleep(poll)
			return 1
		}
		if err := r.wait(ctx, w); err != errGaveUp {
			t.Errorf("got %v, want %v", err, errGaveUp)
		}
		if r.stalls < times || r.stalls > 2*times+1 || w.stalled != 1 {
			t.Errorf("the source was told %d times, want between %d and %d; the owner %d times, want once", r.stalls,
				times, 2*times+1, w.stalled)
		}
	})
}
