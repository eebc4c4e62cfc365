package sim

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"gompi/internal/stress"
)

// A machine whose times show their parts.
func loggp() *Machine {
	return &Machine{Between: Link{Latency: 1000, Overhead: 10}, Wire: 0.5, Gap: 1}
}

// One message takes o at either end, L, and g + nG on the link.
func message8(n int) float64 { return 2*10 + 1000 + 1 + 0.5*float64(n) }

func TestTimesAreThoseOfTheModel(t *testing.T) {
	for _, tt := range []struct {
		c    Call
		want float64
	}{
		{Call{Op: "bcast", Algorithm: "binomial", Ranks: 2, Bytes: 100}, message8(100)},
		// Each step is a message: the next begins when the last is there.
		{Call{Op: "barrier", Algorithm: "dissemination", Ranks: 8}, 3 * message8(0)},
		{Call{Op: "barrier", Algorithm: "dissemination", Ranks: 9}, 4 * message8(0)},
		{Call{Op: "allreduce", Algorithm: "rdouble", Ranks: 16, Bytes: 40}, 4 * message8(40)},
		// A tree's root sends to its largest subtree first, whose depth is one less.
		{Call{Op: "bcast", Algorithm: "binomial", Ranks: 16, Bytes: 40}, 4 * message8(40)},
		{Call{Op: "barrier", Algorithm: "binomial", Ranks: 16}, 8 * message8(0)},
		// A ring has p-1 steps of a block.
		{Call{Op: "allgather", Algorithm: "ring", Ranks: 5, Bytes: 60}, 4 * message8(60)},
		// 2 log2 p steps, of which the k-th has n/2^k bytes.
		{Call{Op: "allreduce", Algorithm: "halving", Ranks: 4, Bytes: 80}, 2 * (message8(40) + message8(20))},
		// Three messages share the root's link. The last waits for the others.
		{Call{Op: "gather", Algorithm: "linear", Ranks: 4, Bytes: 200}, message8(200) + 2*101},
		{Call{Op: "scatter", Algorithm: "linear", Ranks: 4, Bytes: 200}, message8(200) + 2*101},
	} {
		res, err := loggp().Time(tt.c)
		if err != nil || math.Abs(res.Time-tt.want) > 1e-9*tt.want {
			t.Errorf("%+v: %v, %v: want %v", tt.c, res.Time, err, tt.want)
		}
	}
}

func TestTheReceiverOfALongMessageSendsWordFirst(t *testing.T) {
	m := loggp()
	m.Eager = 99
	got := crossing(t, m, 1, 100)
	if want := message8(0) + message8(100); math.Abs(got-want) > 1e-6 {
		t.Errorf("%v, want %v", got, want)
	}
}

// crossing lets n ranks of one half send to one each of the other, at once.
func crossing(t *testing.T, m *Machine, n, bytes int) float64 {
	t.Helper()
	res, err := Run(m, 2*n, func(r *Rank) error {
		if r.Rank() < n {
			r.SendBytes(r.Rank()+n, bytes)
		} else {
			r.RecvBytes(r.Rank()-n, bytes)
		}
		return r.Wait()
	})
	if err != nil {
		t.Fatal(err)
	}
	return res.Time
}

func TestSharedLinksAreShared(t *testing.T) {
	const n, bytes = 4, 1000
	tree, host, rails, cpu := loggp(), loggp(), loggp(), loggp()
	tree.Tree = []Level{tree.Oversubscribed(n, 4, 7)}
	host.RanksPerHost = n
	rails.RanksPerHost, rails.Rails = n, 2
	cpu.Processors, cpu.RanksPerHost, cpu.Wire, cpu.Gap = 1, n, 0, 0
	cpu.Switch = 100
	for _, tt := range []struct {
		name string
		m    *Machine
		want float64
	}{
		{"own links", loggp(), message8(bytes)},
		{"a switch's link that is as fast as one of four", tree, message8(bytes) + 7 + (n-1)*0.5*bytes},
		{"a host's link", host, message8(bytes) + (n-1)*(1+0.5*bytes)},
		{"two rails", rails, message8(bytes) + (1 + 0.5*bytes)},
		// The host's processor starts each message 10 later than the one before, and takes 110 for
		// each.
		{"one processor of a host", cpu, 10 + 1000 + n*110},
	} {
		if got := crossing(t, tt.m, n, bytes); math.Abs(got-tt.want) > 1e-6 {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestABurstPassesAtOnce(t *testing.T) {
	m := loggp()
	m.Gap, m.Burst = 0, 3000
	if got, want := crossing(t, m, 1, 1000), 1020.0; math.Abs(got-want) > 1e-6 {
		t.Errorf("within the burst: %v, want %v", got, want)
	}
	if got, want := crossing(t, m, 1, 5000), 1020+0.5*2000; math.Abs(got-want) > 1e-6 {
		t.Errorf("beyond it: %v, want %v", got, want)
	}
}

func TestALateRankIsWaitedFor(t *testing.T) {
	c := Call{Op: "barrier", Algorithm: "dissemination", Ranks: 8}
	res, err := loggp().Time(c, Fault{Rank: 3, Late: 5000})
	if want := 5000 + 3*message8(0); err != nil || res.Time != want {
		t.Errorf("%v, %v: want %v", res.Time, err, want)
	}
	res, err = loggp().Time(c, Fault{Rank: 3, Slow: 3})
	if want := 3*message8(0) + 2*10 + 2*10 + 2*10; err != nil || res.Time > want || res.Time <= 3*message8(0) {
		t.Errorf("%v, %v: want at most %v, and more than without", res.Time, err, want)
	}
}

func TestACutLinkEndsAllRanks(t *testing.T) {
	m := loggp()
	var errs [8]error
	res, err := Run(m, 8, func(r *Rank) error {
		for {
			r.SendBytes((r.Rank()+1)%8, 8)
			r.RecvBytes((r.Rank()+7)%8, 8)
			if err := r.Wait(); err != nil {
				errs[r.Rank()] = err
				return err
			}
		}
	}, Fault{Rank: 5, Cut: true, At: 5000, Detect: 30_000})
	if err == nil || !strings.Contains(err.Error(), "host 5 is cut") {
		t.Errorf("%v: want an error that names host 5", err)
	}
	for i := range errs {
		if errs[i] == nil || res.Done[i] < 35_000 || res.Done[i] > 37_000 {
			t.Errorf("rank %d ends at %v: %v: want an error soon after second 35000", i, res.Done[i], errs[i])
		}
	}
}

func TestRanksThatWaitForNothingAreNamed(t *testing.T) {
	_, err := Run(loggp(), 3, func(r *Rank) error {
		if r.Rank() == 1 {
			r.RecvBytes(2, 8)
		}
		return r.Wait()
	})
	if err == nil || !strings.Contains(err.Error(), "rank 1 waits for rank 2") {
		t.Errorf("%v: want rank 1 waits for rank 2", err)
	}
	if _, err := Run(loggp(), 2, func(r *Rank) error { r.RecvBytes(1-r.Rank(), 8); return nil }); err == nil {
		t.Error("ranks that do not wait: want an error")
	}
	if _, err := Run(loggp(), 2, func(r *Rank) error { return errors.New("mine") }); err == nil ||
		!strings.Contains(err.Error(), "rank 0: mine") {
		t.Errorf("%v: want rank 0: mine", err)
	}
}

func TestASimulationIsTheSameEachTime(t *testing.T) {
	m := named(t, "cluster")
	m.Tree = []Level{m.Oversubscribed(4, 4, 1*us), m.Oversubscribed(8, 2, 1*us)}
	m.Processors = 2
	run := func() string {
		res, err := m.Time(Call{Op: "allreduce", Ranks: 128, Bytes: 1 << 20})
		return fmt.Sprint(res, err)
	}
	if a, b := run(), run(); a != b {
		t.Errorf("%s\n%s", a, b)
	}
}

// Of 65,536 ranks in make nightly, of a quarter of them else.
func TestManyRanks(t *testing.T) {
	ranks := 16384
	if stress.Asked() {
		ranks *= 4
	}
	steps := math.Log2(float64(ranks))
	res, err := loggp().Time(Call{Op: "barrier", Ranks: ranks})
	if want := steps * message8(0); err != nil || math.Abs(res.Time-want) > 1e-9*want ||
		res.Messages != ranks*int(steps) {
		t.Errorf("%v in %d messages, %v: want %v", res.Time, res.Messages, err, want)
	}
}

func TestWhatCannotBeSimulatedIsRefused(t *testing.T) {
	for _, c := range []Call{{Op: "sort", Ranks: 2}, {Op: "barrier", Algorithm: "ring", Ranks: 2}} {
		if _, err := loggp().Time(c); err == nil || !strings.Contains(err.Error(), "want one of") {
			t.Errorf("%+v: %v: want an error that says what there is", c, err)
		}
	}
}

func BenchmarkBarrier64k(b *testing.B) {
	for b.Loop() {
		if _, err := loggp().Time(Call{Op: "barrier", Ranks: 65536}); err != nil {
			b.Fatal(err)
		}
	}
}

// A rank's message to one host delays its next message to another, as they share its link.
func TestMessagesToSeveralHostsLeaveInTurn(t *testing.T) {
	m := &Machine{Wire: 1, Buffer: 1 << 30}
	const long, short = 160 << 10, 40 << 10
	var came [3]float64
	_, err := Run(m, 3, func(r *Rank) error {
		switch r.Rank() {
		case 0:
			r.SendBytes(1, long)
			r.SendBytes(2, short)
		case 1:
			r.RecvBytes(0, long)
		case 2:
			r.RecvBytes(0, short)
		}
		err := r.Wait()
		came[r.Rank()] = r.Now()
		return err
	})
	// The first 16 KiB of the long one have left. Then the short one leaves in three parts, each
	// behind one of the long one.
	if want := [3]float64{0, long + short, 4*16<<10 + short}; err != nil || came != want {
		t.Errorf("%v, %v: want %v", came, err, want)
	}
}
