package shmcoll

import "testing"

// calls makes so many calls of 1 MiB, which take so long copied and through the kernel, and returns
// how many went through the kernel, outside of trials.
func (t *trial) makeCalls(n int, copied, crossed int64) (cross int) {
	for range n {
		switch p := t.next(); p {
		case tell:
			t.decide(t.times, 1<<20)
			fallthrough
		case noPart:
			if t.cross {
				cross++
			}
		case warmUp:
		default:
			took := copied
			if t.cross == (p == present) {
				took = crossed
			}
			t.note(p, took)
		}
	}
	return cross
}

func TestTrialsFindTheFasterWay(t *testing.T) {
	for _, first := range []bool{false, true} {
		var x trial
		x.begin(first, 1<<20)
		for _, phase := range []struct {
			copied, crossed int64
			cross           bool
		}{{100, 50, true}, {100, 95, true}, {50, 100, false}, {95, 100, false}, {100, 95, false}, {100, 80, true}} {
			x.makeCalls(mostCalls+2*samples+x.warming+1, phase.copied, phase.crossed) // until the next trial is over
			const n = 4 * mostCalls
			got := x.makeCalls(n, phase.copied, phase.crossed)
			if x.cross != phase.cross || phase.cross && got < n*98/100 || !phase.cross && got > 0 {
				t.Errorf("first %v, %+v: %d of %d calls through the kernel", first, phase, got, n)
			}
		}
	}
}

// Of the times of one way the least counts, and not those of the last trial, nor of calls that warm
// the caches.
func TestOneSlowCallDecidesNothing(t *testing.T) {
	for _, bytes := range []int{64 << 10, 1 << 20, 64 << 20} {
		var x trial
		x.begin(false, bytes)
		for range 3 {
			var parts [tell + 1]int
			for p := x.next(); p != tell; p = x.next() {
				if parts[p]++; p > other {
					continue
				}
				took := int64(100)
				if parts[p] == 1 {
					took = 100_000 * int64(1+p) // it was interrupted
				}
				x.note(p, took)
			}
			if x.times != [2]int64{100, 100} || parts[present] != samples || parts[other] != samples || parts[warmUp] != min(warm/bytes, mostWarming) {
				t.Fatalf("%d bytes: parts %d with times %d", bytes, parts, x.times)
			}
			if x.decide(x.times, bytes); x.cross {
				t.Fatal("the other way was taken, which is not faster")
			}
		}
	}
}

func TestLongCallsAreTriedAlso(t *testing.T) {
	for _, test := range []struct{ bytes, want int }{{1, mostCalls}, {1 << 20, mostCalls}, {4 << 20, mostCalls / 4}, {1 << 30, fewCalls}} {
		var x trial
		x.begin(false, test.bytes)
		for range 20 {
			x.decide([2]int64{100, 100}, test.bytes)
		}
		if x.after != test.want {
			t.Errorf("of %d bytes: every %d calls, want %d", test.bytes, x.after, test.want)
		}
	}
}
