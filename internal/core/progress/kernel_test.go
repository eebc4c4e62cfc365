//go:build linux && !gompi_portable

package progress_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/core/progress"
	"gompi/internal/poll"
	"gompi/internal/stress"
	"gompi/internal/world"
)

// longSet is a poll set in which drivers sleep for so long that a wake-up that is lost shows.
type longSet struct{ *poll.Set }

const long = 20 * time.Second

func (s longSet) Sleep(d time.Duration) bool {
	if d >= time.Millisecond {
		d = long
	}
	return s.Set.Sleep(d)
}

// newKernelRank returns a rank that sleeps in the kernel, and whose peers ring a doorbell.
func newKernelRank(t *testing.T) *rank {
	bell, err := unix.Eventfd(0, unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	set, err := poll.New(bell)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	r := &rank{polled: map[world.Rank]int{}, ring: func() { poll.Ring(bell) }}
	r.onPoll = func() int { return set.Ready(make([]poll.Event, 1)) }
	r.Init(progress.Config{Source: r, Parker: longSet{set}, Yield: runtime.Gosched})
	r.SetSpin(0, 2, true, func() bool { return true }, time.Hour)
	return r
}

// Goroutines that wait, and one that tests, have the kernel wake each other's threads. None is
// forgotten: the next round, whose words would wake it, begins when all have theirs.
func TestTheKernelForgetsNoWaiterWithAnyTiming(t *testing.T) {
	r, end := newKernelRank(t), stress.Until(t)
	for seed := rand.Uint64(); time.Now().Before(end) && !t.Failed(); seed++ {
		var all sync.WaitGroup
		for i := range 4 {
			w, rng, begin := newWord(), rand.New(rand.NewPCG(seed, uint64(i))), time.Now()
			all.Go(func() {
				for range rng.IntN(40) {
					stress.Pause(rng)
				}
				r.store(w)
			})
			all.Go(func() {
				if i == 0 {
					r.test(w)
				} else if err := r.wait(context.Background(), w); err != nil {
					t.Error(err)
				}
				if d := time.Since(begin); d > long/2 {
					t.Errorf("seed %d: goroutine %d has waited for %v", seed, i, d)
				}
			})
		}
		all.Wait()
	}
	r.close(t)
}
