package progress_test

import (
	"testing"
	"testing/synctest"
	"time"
)

// vainly waits so often, each time in vain for a while.
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

// Goroutines that wait judge now and then whether they may spin, and no oftener.
func TestSpinningIsJudgedAnewWhileGoroutinesWait(t *testing.T) {
	const many = 100 // waits: drivers look at the clock on every 64th
	bubble(t, 30*time.Second, func(t *testing.T) {
		r, asked, fits := newRank(false), 0, false
		r.SetSpin(1, 1, true, func() bool { asked++; return fits }, 5*time.Second)
		for i, room := range []bool{false, true, false} {
			fits = room
			if vainly(t, r, many); asked != i || r.Spins() == room {
				t.Errorf("before its time: asked %d times, spins %v", asked, r.Spins())
			}
			time.Sleep(10 * time.Second)
			if vainly(t, r, many); asked != i+1 || r.Spins() != room {
				t.Errorf("asked %d times, spins %v, want %d, %v", asked, r.Spins(), i+1, room)
			}
		}
	})
}

// So does one that sleeps for long.
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
