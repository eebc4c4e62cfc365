// Package stress is common code of tests. Short runs (go test -short, make test) leave some tests,
// and most rows of large tables, to make test-all; STRESS (make nightly) asks for more. Tests of
// memory ordering pause at random steps, and continue as long as requested. Servers meet a listener
// without descriptors.
package stress

import (
	"hash/crc32"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"
)

// Until returns the end of a stress test: soon, or after the time in the environment variable
// STRESS, such as "2m". make nightly sets STRESS.
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

// Asked reports whether STRESS sets a time.
func Asked() bool { return os.Getenv("STRESS") != "" }

// Pause mostly does nothing. Sometimes it lets other goroutines run, or takes as long as a message
// or the wake-up of a thread.
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

// Long leaves a test to make test-all: short runs, such as make test, skip the test, and say why.
func Long(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip("make test-all: " + why)
	}
}

// Slow leaves a test to make test, which sets SLOW: go test -short alone is for the minutes between
// edits, and has no hosts to start and no deadlines to await.
func Slow(t testing.TB, why string) {
	t.Helper()
	if testing.Short() && os.Getenv("SLOW") == "" {
		t.Skip("make test: " + why)
	}
}

// Some returns all rows of a table, or in short runs n of them, evenly spread. The name of the test
// selects them, so that tests of one table take different rows.
func Some[T any](t testing.TB, n int, rows []T) []T {
	if !testing.Short() || n >= len(rows) {
		return rows
	}
	first := int(crc32.ChecksumIEEE([]byte(t.Name()))) % len(rows)
	some := make([]T, n)
	for i := range some {
		some[i] = rows[(first+i*len(rows)/n)%len(rows)]
	}
	return some
}

// Nightly leaves a test to make nightly, unless STRESS is set.
func Nightly(t testing.TB, why string) {
	t.Helper()
	if !Asked() {
		t.Skip("make nightly: " + why)
	}
}
