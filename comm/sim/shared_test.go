package sim

import (
	"math"
	"strings"
	"testing"
)

func TestHierarchicalTimesAreThoseOfTheModel(t *testing.T) {
	m := loggp()
	m.RanksPerHost, m.Shared = 2, Memory{Latency: 40, Peer: 3, Copy: 0.1}
	// Who reads n bytes that another stores.
	step := func(n int) float64 { return 0.1*float64(n) + 40 + 3 + 0.1*float64(n) }
	for _, tt := range []struct {
		c    Call
		want float64
	}{
		{Call{Op: "barrier", Algorithm: "leader", Ranks: 4}, step(0) + message8(0) + step(0)},
		{Call{Op: "bcast", Algorithm: "leader", Ranks: 4, Bytes: 200}, message8(200) + step(200)},
		{Call{Op: "gather", Algorithm: "leader", Ranks: 4, Bytes: 100}, step(100) + message8(200)},
		// The last rank is alone on its host.
		{Call{Op: "bcast", Algorithm: "leader", Ranks: 3, Bytes: 200}, message8(200)},
		// Both rails share the link.
		{Call{Op: "allreduce", Algorithm: "multi-leader", Ranks: 4, Bytes: 128},
			step(64) + message8(64) + message8(64) - message8(0) + 1 + step(64)},
		{Call{Op: "alltoall", Algorithm: "multi-leader", Ranks: 4, Bytes: 50}, message8(100) + 51 + 2*step(50)},
	} {
		res, err := m.Time(tt.c)
		if err != nil || math.Abs(res.Time-tt.want) > 1e-9*tt.want {
			t.Errorf("%+v: %v, %v: want %v", tt.c, res.Time, err, tt.want)
		}
	}
}

func TestWhatRanksOfAHostReadSharesItsMemory(t *testing.T) {
	m := loggp()
	m.RanksPerHost, m.Shared = 8, Memory{Copy: 0.1, Total: 0.05}
	if got, want := seconds(t, m, Call{Op: "bcast", Algorithm: "leader", Ranks: 16, Bytes: 1000}),
		message8(1000)+2*8*0.05*1000; math.Abs(got-want) > 1e-6 {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestARankThatDoesNotComeToItsHostIsNamed(t *testing.T) {
	m := loggp()
	m.RanksPerHost = 2
	c := Call{Op: "barrier", Ranks: 4}
	join := m.hierarchy(c)
	way, err := m.way(kinds[0], c)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Run(m, 4, func(r *Rank) error {
		if r.Rank() == 3 {
			return nil
		}
		return join(r).Run(way, r.call(kinds[0], c))
	})
	if err == nil || !strings.Contains(err.Error(), "rank 2 waits for ranks of its host") {
		t.Errorf("%v: want rank 2 waits for ranks of its host", err)
	}
}

func TestARankMayBeAloneOnTheLastHost(t *testing.T) {
	m := named(t, "cluster")
	for _, op := range Ops() {
		c := Call{Op: op, Ranks: 9, Bytes: 32 << 10}
		ways, err := m.Algorithms(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, c.Algorithm = range ways {
			if x := seconds(t, m, c); x <= 0 {
				t.Errorf("%+v: %v seconds", c, x)
			}
		}
	}
}
