package progress_test

import (
	"testing"
	"testing/synctest"
	"time"
)

// vainly waits several times; each time the driver polls in vain at first.
func vainly(t *testing.T, r *rank, times int) {
	t.Helper()
	for range times {
		w := newWord()
		done := r.start(t.Context(), w)
		synctest.Wait()
		r.store(w)
		want(t, done)
	}
}

// While goroutines wait, they check from time to time whether they may spin, and no more often.
func TestSpinningIsJudgedAnewWhileGoroutinesWait(t *testing.T) {
	const many = 100 // waits: drivers look at the clock on every 64th
	bubble(t, 30*time.Second, func(t *testing.T) {
		r, asked, fits := newRank(false), 0, false
		r.SetSpin(1, 1, true, func() bool { asked++; return fits }, 5*time.Second)
		for i, fit := range []bool{false, true, false} {
			fits = fit
			if vainly(t, r, many); asked != i || r.Spins() == fit {
				t.Errorf("before its time: asked %d times, spins %v", asked, r.Spins())
			}
			time.Sleep(10 * time.Second)
			if vainly(t, r, many); asked != i+1 || r.Spins() != fit {
				t.Errorf("asked %d times, spins %v, want %d, %v", asked, r.Spins(), i+1, fit)
			}
		}
	})
}

// One long wait checks it, too.
func TestSpinningIsJudgedAnewByALongWait(t *testing.T) {
	bubble(t, 12*time.Second, func(t *testing.T) {
		r, w := newRank(false), newWord()
		r.SetSpin(1, 1, true, func() bool { return false }, 5*time.Second)
		time.Sleep(10 * time.Second)
		done := r.start(t.Context(), w)
		time.Sleep(2 * time.Second)
		r.store(w)
		if want(t, done); r.Spins() {
			t.Error("it spins")
		}
	})
}

func TestWhoNeverSpinsJudgesNothing(t *testing.T) {
	bubble(t, 10*time.Second, func(t *testing.T) {
		r := newRank(false)
		r.SetSpin(0, 1, true, func() bool { panic("asked") }, 5*time.Second)
		time.Sleep(10 * time.Second)
		if vainly(t, r, 100); r.Spins() {
			t.Error("it spins")
		}
	})
}
