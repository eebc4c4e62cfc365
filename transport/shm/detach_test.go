package shm

import (
	"testing"

	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// TestRingsOfTheDeadAreFreedAndForgotten detaches rank 0 of four from rank 1, while rank 2 is dead,
// too, and rank 3 lives.
func TestRingsOfTheDeadAreFreedAndForgotten(t *testing.T) {
	memory, heaps := area(4), [4][]byte{}
	for i := range heaps {
		heaps[i] = make([]byte, leastChunk)
	}
	states := [4]State{}
	type ring struct{ to, from int }
	freed := map[ring]int{}
	sink := ends{losses: losses{}}
	ranks := make([]*Transport, 4)
	for i := range ranks {
		cfg := Config{Local: world.LocalRank(i), Ranks: []world.Rank{0, 1, 2, 3}, Area: memory, Claim: claimed,
			Ring:  func(world.LocalRank) {},
			Heap:  func(local world.LocalRank) []byte { return heaps[local] },
			State: func(local world.LocalRank) State { return states[local] }}
		cfg.Release = func(off, n int) error {
			at := (off - ringsAt(4)) / stride(4)
			if n != stride(4) || off != ringsAt(4)+at*stride(4) {
				t.Errorf("%d bytes at %d are freed, want a ring", n, off)
			}
			freed[ring{at / 4, at % 4}]++
			for j := range memory[off:][:n] {
				memory[off+j] = 0xff // which no rank takes for a record
			}
			return nil
		}
		var err error
		if ranks[i], err = New(cfg, &sink); err != nil {
			t.Fatal(err)
		}
	}
	for i, a := range ranks {
		for j := range ranks {
			if i != j {
				a.Send(world.Rank(j), &transport.Header{Kind: transport.Credit}, mem.Buffer{}, 0)
			}
		}
	}
	ranks[0].Detach(1)
	if len(freed) != 0 || len(sink.losses) != 0 {
		t.Fatalf("rank 1 lives: %v is freed, %v lost", freed, sink.losses)
	}
	states[1], states[2] = Dead, Dead
	ranks[0].Poll(-1) // it has heard of rank 2, and nothing of rank 1
	ranks[0].Detach(1)
	want := []ring{{0, 1}, {1, 0}, {1, 2}, {2, 1}}
	for _, r := range want {
		if freed[r] != 1 {
			t.Errorf("the ring to %d from %d is freed %d times, want once", r.to, r.from, freed[r])
		}
	}
	if len(freed) != len(want) || sink.losses[1] == nil || sink.losses[3] != nil {
		t.Errorf("%v is freed, want %v; lost: %v, want rank 1 and not 3", freed, want, sink.losses)
	}
	delete(sink.losses, 1)
	ranks[0].Get(1, 1, mem.Bytes(make([]byte, 100)), 1, true)
	ranks[0].Send(1, &transport.Header{Kind: transport.Credit}, mem.Buffer{}, 0)
	for range 10 {
		ranks[0].Poll(1)
	}
	if ranks[0].Poll(-1); !ranks[0].Arm() || sink.losses[1] != nil || sink.all != 1 || sink.well != 0 {
		t.Errorf("after it: lost %v, %d copies ended, %d well; want nothing but a copy that failed, and sleep",
			sink.losses, sink.all, sink.well)
	}
}
