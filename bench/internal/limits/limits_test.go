package limits

import (
	"math"
	"testing"
	"time"
)

// flat is a machine whose threads copy 2 GB/s of vectors and add 1 GB/s each.
func flat(np, threads int) Limits {
	l := Limits{np: np, threads: threads, crossing: 0.05}
	for n := 4096; n <= 1<<20; n *= 4 {
		l.copies.add(n, float64(n)/2000)
		l.sums.add(n, float64(n)/1000)
	}
	return l
}

func TestTheLeastTimeFollowsFromTheBytes(t *testing.T) {
	for _, tt := range []struct {
		op                 string
		np, threads, bytes int
		want               float64 // us; 0: none
	}{
		{"barrier", 2, 2, 0, 0.05},
		{"latency", 2, 2, 8000, 4.05}, // the receiver copies alone
		{"bw", 2, 2, 8000, 2.05},      // both copy
		{"bcast", 2, 2, 8000, 2.05},   // one read and one written
		{"bcast", 4, 4, 8000, 2.05},   // one read and three written, by four
		{"allreduce", 2, 2, 6000, 4.05},
		{"reduce", 2, 2, 8000, 4.05},
		{"reducescatter", 2, 2, 4000, 4.05},
		{"allgather", 2, 2, 8000, 6.05},
		{"alltoall", 4, 2, 1 << 20, 16 * 2 * (1 << 20) / 2 / 2000. / 2}, // ranks share processors: no crossing
		{"alltoall", 4, 2, 4096, 0},                                     // and little can be said of small ones
		{"allreduce", 1, 1, 8000, 0},
		{"skew", 2, 2, 0, 0},
	} {
		got, ok := flat(tt.np, tt.threads).Time(tt.op, tt.bytes)
		if Known(tt.op) == (tt.op == "skew") {
			t.Errorf("Known(%q) is wrong", tt.op)
		}
		if math.Abs(got-tt.want) > 1e-6*tt.want || ok != (tt.want > 0) {
			t.Errorf("%s of %d bytes, %d ranks, %d threads: %v, %v; want %v us", tt.op, tt.bytes, tt.np, tt.threads, got, ok, tt.want)
		}
	}
}

func TestACurveGoesOnWhereItWasNotMeasured(t *testing.T) {
	var c curve
	if got := c.at(5); got != 0 {
		t.Errorf("of nothing: %v, want 0", got)
	}
	c.add(100, 10)
	c.add(10000, 1000)
	c.add(40000, 16000) // slower beyond a cache
	for bytes, want := range map[float64]float64{0: 0, 50: 5, 100: 10, 1000: 100, 20000: 4000, 80000: 32000} {
		if got := c.at(bytes); math.Abs(got-want) > 1e-9*want {
			t.Errorf("at(%v) = %v, want %v", bytes, got, want)
		}
	}
}

func TestAGaugeMeasuresEverySize(t *testing.T) {
	g := newGauge(1, []int{4096, 65536})
	l := g.Measure(2, 50*time.Nanosecond)
	if len(l.copies.us) != 2 || len(l.sums.us) != 2 || l.crossing < 0.0499 || l.crossing > 0.0501 {
		t.Fatalf("got %+v, want two sizes and a crossing of 0.05 us", l)
	}
	if l.copies.us[0] <= 0 || l.copies.us[1] <= l.copies.us[0] || l.sums.us[1] <= l.sums.us[0] {
		t.Errorf("got %+v: want more time for more bytes", l)
	}
}

func TestManyThreadsShareABoundedMemory(t *testing.T) {
	for threads, want := range map[int]int{1: 64 << 20, 2: 64 << 20, 64: 4 << 20, 1 << 20: 4 << 10} {
		sizes := sizesFor(threads)
		if most := sizes[len(sizes)-1]; most != want {
			t.Errorf("%d threads get vectors of up to %d bytes, want %d", threads, most, want)
		}
	}
}
