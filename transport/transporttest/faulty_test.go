package transporttest

import (
	"bytes"
	"errors"
	"testing"

	"gompi/transport"
	"gompi/transport/inproc"
)

// faultyOpen makes ranks that reach each other in this process, each with the
// faults that decide gives it.
func faultyOpen(decide func(rank int, ev Event) Fault) Open {
	return func(t *testing.T, sinks []transport.Sink) *Net {
		w := inproc.NewWorld(len(sinks))
		n := &Net{Kill: w.Kill}
		for i, s := range sinks {
			p := inproc.NewParker()
			tr := Faulty(s, func(ev Event) Fault { return decide(i, ev) }, func(s transport.Sink) transport.Transport {
				return w.Transport(i, s, p)
			})
			n.Ends = append(n.Ends, End{Transport: tr, Parker: p})
		}
		return n
	}
}

func TestDelayKeepsTheContract(t *testing.T) {
	open := faultyOpen(func(_ int, ev Event) Fault {
		if !ev.Out {
			return Fault{}
		}
		return Fault{Delay: ev.N % 4}
	})
	for name, test := range map[string]func(*testing.T, *net){
		"order":   framesArriveInOrder,
		"windows": smallWindows,
		"drop":    droppedPayload,
		"sink":    sinkMaySend,
		"reuse":   bufferReuse,
		"sent":    sentOnce,
		"forget":  forgottenSend,
		"sleep":   sleepersAreWoken,
		"goodbye": goodbyeAfterData,
		"close":   allClose,
		"death":   deathGivesBuffersBack,
	} {
		t.Run(name, func(t *testing.T) {
			size := 2
			if name == "close" {
				size = 4
			}
			test(t, newNet(t, open, size))
		})
	}
}

// at returns faults for one frame, counted from 0, in one direction at one
// rank.
func at(rank int, out bool, n int, fault Fault) func(int, Event) Fault {
	return func(r int, ev Event) Fault {
		if r == rank && ev.Out == out && ev.N == n {
			return fault
		}
		return Fault{}
	}
}

func TestCutComesBeforeTheFrame(t *testing.T) {
	for _, out := range []bool{true, false} {
		n := newNet(t, faultyOpen(at(1, out, 2, Fault{Cut: true})), 2)
		from, to := n.ranks[0], n.ranks[1]
		if out {
			from, to = to, from
		}
		for i := range 4 {
			from.post(to.id, i, 100)
		}
		if err := n.ranks[1].until("the cut", func() bool { return n.ranks[1].lost[0] != nil }); err != nil {
			t.Fatal(err)
		}
		if err := n.ranks[1].lost[0]; !errors.Is(err, transport.ErrCut) {
			t.Errorf("lost with %v, want %v", err, transport.ErrCut)
		}
		for range 10 {
			to.Poll(-1)
		}
		if err := to.check(from.id, []int{100, 100}); err != nil {
			t.Errorf("leaving %v: %v", out, err)
		}
	}
}

func TestTruncateGivesHalfThePayload(t *testing.T) {
	n := newNet(t, faultyOpen(at(1, false, 0, Fault{Truncate: true})), 2)
	from, to := n.ranks[0], n.ranks[1]
	to.window = func(*transport.Header) int { return 300 }
	from.post(1, 0, 1001)
	if err := to.until("the cut", func() bool { return to.lost[0] != nil }); err != nil {
		t.Fatal(err)
	}
	if len(to.got) != 0 || len(to.arriving) != 1 {
		t.Fatalf("%d messages complete, %d begun; want 0 and 1", len(to.got), len(to.arriving))
	}
	for _, a := range to.arriving {
		want := pattern(0, 0, 1001)[:500]
		if got := append(a.payload, a.scratch[:200]...); !bytes.Equal(got, want) {
			t.Errorf("half the payload is not what was sent: %d bytes stored", len(a.payload))
		}
	}
}

func TestStallIsSilent(t *testing.T) {
	n := newNet(t, faultyOpen(at(0, true, 1, Fault{Stall: true})), 2)
	for i := range 3 {
		n.ranks[0].post(1, i, 100)
		n.ranks[1].post(0, i, 100)
	}
	for range 20 {
		n.ranks[0].Poll(-1)
		n.ranks[1].Poll(-1)
	}
	n.kill(1)
	for range 20 {
		n.ranks[0].Poll(-1)
	}
	if len(n.ranks[1].got) != 1 || len(n.ranks[0].got) != 0 || len(n.ranks[0].lost) != 0 {
		t.Errorf("%d frames came through and %d back, lost %v; want 1, 0 and nothing",
			len(n.ranks[1].got), len(n.ranks[0].got), n.ranks[0].lost)
	}
}
