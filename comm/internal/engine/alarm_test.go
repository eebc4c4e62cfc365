package engine

import (
	"testing"
	"testing/synctest"
	"time"
)

// A driver that messages keep from blocking is not noticed again as soon as its timer has
// rung.
func TestAWaitIsNoticedOnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{Size: 1})
		e.lock()
		defer e.unlock()
		w, a := e.newWaiter(), new(alarm)
		a.rings() // looks at the clock
		time.Sleep(stallAfter)
		a.fired = true // by its timer
		e.notice(w, a)
		if a.rings() {
			t.Error("it rings again at once")
		}
		time.Sleep(stallAfter)
		if !a.rings() {
			t.Errorf("it does not ring after %v more", stallAfter)
		}
	})
}
