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
		x.begin(first)
		x.makeCalls(leastCalls+2*samples, 100, 50)
		for _, phase := range []struct {
			copied, crossed int64
			cross           bool
		}{{100, 50, true}, {100, 95, true}, {50, 100, false}, {95, 100, false}, {100, 95, false}, {100, 80, true}} {
			x.makeCalls(mostCalls+2*samples+1, phase.copied, phase.crossed) // until the next trial is over
			const n = 4 * mostCalls
			got := x.makeCalls(n, phase.copied, phase.crossed)
			if x.cross != phase.cross || phase.cross && got < n*98/100 || !phase.cross && got > 0 {
				t.Errorf("first %v, %+v: %d of %d calls through the kernel", first, phase, got, n)
			}
		}
	}
}

// Of the times of one way the least counts, and not those of the last trial.
func TestOneSlowCallDecidesNothing(t *testing.T) {
	var x trial
	x.begin(false)
	for range 3 {
		for n := 0; x.calls == 0 || x.calls < x.after; n++ {
			x.next()
		}
		for i := range 2 * samples {
			p := x.next()
			if p != part(i%2) {
				t.Fatalf("call %d of a trial: part %d", i, p)
			}
			took := int64(100)
			if i < 2 {
				took = 100_000 * int64(1+i) // page faults
			}
			x.note(p, took)
		}
		if p := x.next(); p != tell || x.times != [2]int64{100, 100} {
			t.Fatalf("part %d with times %d", p, x.times)
		}
		x.decide(x.times, 1)
		if x.cross {
			t.Fatal("the other way was taken, which is not faster")
		}
	}
}

func TestLongCallsAreTriedAlso(t *testing.T) {
	for _, test := range []struct{ bytes, want int }{{1, mostCalls}, {1 << 20, mostCalls}, {4 << 20, mostCalls / 4}, {1 << 30, fewCalls}} {
		var x trial
		x.begin(false)
		for range 20 {
			x.decide([2]int64{100, 100}, test.bytes)
		}
		if x.after != test.want {
			t.Errorf("of %d bytes: every %d calls, want %d", test.bytes, x.after, test.want)
		}
	}
}
