package progress_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// handOver hands a function over that notes that it was called.
func (r *rank) handOver() (called *atomic.Bool, over <-chan error) {
	called, done := new(atomic.Bool), make(chan error, 1)
	go func() {
		r.Callback(func() { called.Store(true) })
		done <- nil
	}()
	return called, done
}

// Whoever sleeps in the foreground calls what is handed over, and goes on waiting.
func TestSleepersCallBack(t *testing.T) {
	bubble(t, 0, func(t *testing.T) {
		for _, parked := range []bool{true, false} { // it drives, or another does
			r, other, w := newRank(false), newWord(), newWord()
			other.Background = true
			var driver <-chan error
			if !parked {
				driver = r.start(t.Context(), other)
				synctest.Wait()
			}
			waits := r.start(t.Context(), w)
			synctest.Wait()
			for range 3 {
				called, over := r.handOver()
				want(t, over)
				if !called.Load() {
					t.Error("it was not called")
				}
			}
			going(t, waits)
			r.store(w)
			want(t, waits)
			if !parked {
				r.store(other)
				want(t, driver)
			}
		}
	})
}

// What nobody in the foreground waits to call waits for whoever waits or tests next. Meanwhile
// nothing is at rest.
func TestCallbacksWaitForTheForeground(t *testing.T) {
	bubble(t, 0, func(t *testing.T) {
		r, background, apart, w := newRank(false), newWord(), newWord(), newWord()
		background.Background, apart.Apart = true, true
		waits := []<-chan error{r.start(t.Context(), background), r.start(t.Context(), apart)}
		synctest.Wait()
		called, over := r.handOver()
		synctest.Wait()
		if going(t, over); called.Load() {
			t.Error("the background has called it")
		}
		if get(r, r.Rest) {
			t.Error("the engine is at rest")
		}
		w.stored.Store(true)
		if err := r.wait(t.Context(), w); err != nil {
			t.Error(err)
		}
		want(t, over)
		called, over = r.handOver()
		synctest.Wait()
		get(r, func() bool { r.CallBack(); return true })
		if want(t, over); !called.Load() {
			t.Error("who tests has not called it")
		}
		r.store(background)
		r.store(apart)
		for _, waits := range waits {
			want(t, waits)
		}
	})
}

// One that was woken to call back may be over before: another one does it then.
func TestWhoGoesOffersCallbacksToOthers(t *testing.T) {
	for range 100 {
		bubble(t, 0, func(t *testing.T) {
			r, first, second := newRank(false), newWord(), newWord()
			ctx, cancel := context.WithCancelCause(t.Context())
			gives, stays := r.start(ctx, first), r.start(t.Context(), second)
			synctest.Wait()
			go cancel(errGaveUp)
			_, over := r.handOver()
			want(t, over)
			if err := <-gives; err != errGaveUp {
				t.Errorf("got %v, want %v", err, errGaveUp)
			}
			r.store(second)
			want(t, stays)
		})
	}
}

// While one calls, others call what else is handed over.
func TestCallbacksRunAtOnceOnSeveral(t *testing.T) {
	bubble(t, 0, func(t *testing.T) {
		r, words := newRank(false), []*word{newWord(), newWord()}
		waits := []<-chan error{r.start(t.Context(), words[0]), r.start(t.Context(), words[1])}
		synctest.Wait()
		meet := make(chan struct{})
		go r.Callback(func() { meet <- struct{}{} })
		r.Callback(func() { <-meet })
		for i, w := range words {
			r.store(w)
			want(t, waits[i])
		}
	})
}
