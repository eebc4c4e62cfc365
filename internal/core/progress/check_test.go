package progress_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"gompi/internal/core/progress"
)

func TestALongWaitAsksItsCheckAsOftenAsThatWants(t *testing.T) {
	bubble(t, time.Hour, func(t *testing.T) {
		r, w := newRank(false), newWord()
		var asked []time.Duration
		again := []time.Duration{5 * time.Millisecond, 300 * time.Millisecond, 0}
		ctx := progress.WithCheck(t.Context(), func(waited time.Duration) (time.Duration, error) {
			asked = append(asked, waited)
			return again[len(asked)-1], nil
		})
		done := r.start(ctx, w)
		time.Sleep(time.Hour)
		synctest.Wait()
		if want := []time.Duration{time.Millisecond, 6 * time.Millisecond,
			306 * time.Millisecond}; !slices.Equal(asked, want) {
			t.Errorf("asked after %v, want %v", asked, want)
		}
		r.store(w)
		want(t, done)
	})
}

func TestAnErrorOfItsCheckEndsAWait(t *testing.T) {
	bubble(t, progress.CheckAfter, func(t *testing.T) {
		r, w, other := newRank(false), newWord(), newWord()
		goes := r.start(t.Context(), other)
		synctest.Wait()
		ctx := progress.WithCheck(t.Context(), func(time.Duration) (time.Duration, error) { return 0, errGaveUp })
		if err := r.wait(ctx, w); !errors.Is(err, errGaveUp) {
			t.Errorf("got %v, want %v", err, errGaveUp)
		}
		r.store(other)
		want(t, goes)
	})
}

// A Check holds no lock, may wait itself, and leaves the drive to others. What is over is over
// although its Check fails meanwhile.
func TestOthersGoOnWhileACheckIsAsked(t *testing.T) {
	bubble(t, progress.CheckAfter, func(t *testing.T) {
		r, w, other, third := newRank(false), newWord(), newWord(), newWord()
		goes := r.start(t.Context(), other)
		synctest.Wait()
		ctx := progress.WithCheck(t.Context(), func(time.Duration) (time.Duration, error) {
			synctest.Wait()
			r.store(other)
			want(t, goes)
			third.stored.Store(true)
			if err := r.wait(t.Context(), third); err != nil {
				t.Error(err)
			}
			w.stored.Store(true)
			get(r, func() int { return r.Poll(-1) })
			return 0, errGaveUp
		})
		if err := r.wait(ctx, w); err != nil {
			t.Error(err)
		}
	})
}

// A driver that never blocks, because messages for others keep coming, asks too.
func TestADriverThatNeverBlocksAsksItsCheck(t *testing.T) {
	bubble(t, 8*time.Millisecond, func(t *testing.T) {
		r, w := newRank(false), newWord()
		r.onPoll = func() int {
			if r.polls%1000 == 0 {
				time.Sleep(time.Millisecond)
			}
			return 1
		}
		ctx := progress.WithCheck(t.Context(), func(time.Duration) (time.Duration, error) { return 0, errGaveUp })
		if err := r.wait(ctx, w); !errors.Is(err, errGaveUp) {
			t.Errorf("got %v, want %v", err, errGaveUp)
		}
	})
}
