// Package stress is what tests of memory ordering share: they stop for a moment at
// every step, wherever chance has it, and continue for as long as they are asked to.
package stress

import (
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"
)

// Until returns when a stress test is to end: soon, or after the time that STRESS
// in the environment says, as "2m". make nightly sets it.
func Until(t *testing.T) time.Time {
	t.Helper()
	d := 300 * time.Millisecond
	if s := os.Getenv("STRESS"); s != "" {
		var err error
		if d, err = time.ParseDuration(s); err != nil {
			t.Fatalf("STRESS=%q: want a time, as 2m", s)
		}
	}
	return time.Now().Add(d)
}

// Asked reports whether STRESS says how long to continue.
func Asked() bool { return os.Getenv("STRESS") != "" }

// Pause does nothing, most often; else it lets others run, or takes as long as a
// message does, or as the wake-up of a thread.
func Pause(rng *rand.Rand) {
	switch n := rng.IntN(64); {
	case n < 4:
		runtime.Gosched()
	case n < 8:
		for end := time.Now().Add(time.Duration(rng.IntN(2000))); time.Now().Before(end); {
		}
	case n == 8:
		time.Sleep(time.Duration(rng.IntN(50_000)))
	}
}
