package path

import (
	"testing"
	"time"
)

// makeCalls makes n calls of 1 MiB, which take so long copied and through the kernel, and returns
// how many went through the kernel, outside of trials.
func (t *Trial) makeCalls(n int, copied, crossed time.Duration) (cross int) {
	for range n {
		switch p := t.Next(); p {
		case Conclude:
			t.Decide(t.times, 1<<20)
			fallthrough
		case Untimed:
			if t.Cross {
				cross++
			}
		case WarmUp:
		default:
			took := copied
			if t.Cross == (p == TimePresent) {
				took = crossed
			}
			t.Note(p, took)
		}
	}
	return cross
}

func TestTrialsFindTheFasterWay(t *testing.T) {
	for _, first := range []bool{false, true} {
		var x Trial
		x.Begin(first, 1<<20)
		for _, phase := range []struct {
			copied, crossed time.Duration
			cross           bool
		}{{100, 50, true}, {100, 95, true}, {50, 100, false}, {95, 100, false}, {100, 95, false}, {100, 80, true}} {
			// until the next trial is over
			x.makeCalls(mostCalls+2*(2*samples+x.warming+1), phase.copied, phase.crossed)
			const n = 4 * mostCalls
			got := x.makeCalls(n, phase.copied, phase.crossed)
			if x.Cross != phase.cross || phase.cross && got < n*98/100 || !phase.cross && got > 0 {
				t.Errorf("first %v, %+v: %d of %d calls through the kernel", first, phase, got, n)
			}
		}
	}
}

// Of the times of one way the least counts, and not those of the last trial, nor of calls that warm
// the caches.
func TestOneSlowCallDecidesNothing(t *testing.T) {
	for _, bytes := range []int{64 << 10, 1 << 20, 64 << 20} {
		var x Trial
		x.Begin(false, bytes)
		for range 3 {
			var parts [Conclude + 1]int
			for p := x.Next(); p != Conclude; p = x.Next() {
				if parts[p]++; p > TimeOther {
					continue
				}
				took := time.Duration(100)
				if parts[p] == 1 {
					took = 100_000 * time.Duration(1+p) // it was interrupted
				}
				x.Note(p, took)
			}
			if x.times != (Times{100, 100}) || parts[TimePresent] != samples || parts[TimeOther] != samples ||
				parts[WarmUp] != min(warm/bytes, mostWarming) {
				t.Fatalf("%d bytes: parts %d with times %d", bytes, parts, x.times)
			}
			if x.Decide(x.times, bytes); x.Cross {
				t.Fatal("the other way was taken, which is not faster")
			}
		}
	}
}

func TestLongCallsAreTriedAlso(t *testing.T) {
	for _, test := range []struct{ bytes, want int }{{1, mostCalls}, {1 << 20, mostCalls}, {4 << 20, mostCalls / 4},
		{1 << 30, fewCalls}} {
		var x Trial
		x.Begin(false, test.bytes)
		for range 20 {
			x.Decide(Times{100, 100}, test.bytes)
		}
		if x.after != test.want {
			t.Errorf("of %d bytes: every %d calls, want %d", test.bytes, x.after, test.want)
		}
	}
}
