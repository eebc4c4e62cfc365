package shm

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"gompi/internal/mem"
	"gompi/internal/stress"
	"gompi/internal/world"
)

// A sink that counts the copies that have ended, and how many of them well.
type ends struct {
	losses
	all, well int
}

func (e *ends) Sent(token uint64, err error) {
	if e.all++; err == nil {
		e.well++
	}
}

// One rank copies from the other's heap to its own and asks it to help, which it does or not, and
// both stop for a moment at random places. The bytes that the other has copied are there when the
// copy has ended.
func TestCopiesThatTwoMakeSurviveAnyTiming(t *testing.T) {
	end := stress.Until(t)
	helped := 0
	for seed := uint64(1); seed <= 20 || time.Now().Before(end); seed++ {
		helped += copyTogether(t, seed)
	}
	if helped == 0 {
		t.Error("no rank has ever helped")
	}
}

// copyTogether returns how many chunks were copied by the one that was asked to help.
func copyTogether(t *testing.T, seed uint64) (helped int) {
	const most, copies = 12 * leastChunk, 30
	heaps := [2][]byte{make([]byte, most+100), make([]byte, most+100)}
	area := area(2)
	var ranks [2]*Transport
	var sinks [2]*ends
	for i := range ranks {
		var err error
		sinks[i] = &ends{losses: losses{}}
		if ranks[i], err = New(Config{Local: world.LocalRank(i), Ranks: []world.Rank{0, 1}, Area: area, Claim: claimed,
			Heap: func(local world.LocalRank) []byte { return heaps[local] }, Ring: func(world.LocalRank) {},
			State: func(world.LocalRank) State { return Alive }}, sinks[i]); err != nil {
			t.Fatal(err)
		}
		ranks[i].Reaches(world.Rank(1 - i))
	}
	type offer struct {
		place uint64
		n     int
	}
	offers, done := make(chan offer), make(chan bool)
	var all sync.WaitGroup
	all.Go(func() {
		defer close(offers)
		rng := rand.New(rand.NewPCG(seed, 1))
		for i := range copies {
			n, at := helpFrom+rng.IntN(most-helpFrom), rng.IntN(100)
			src := heaps[1][at:][:n]
			for j := range src {
				src[j] = byte(i + j + j>>8)
			}
			offers <- offer{ranks[1].Place(0, mem.Bytes(src)), n}
			for polls := rng.IntN(40); ; polls-- { // and then it does something else
				select {
				case <-done:
				default:
					if stress.Pause(rng); polls > 0 || ranks[1].moving > 0 {
						ranks[1].Poll(0)
					}
					continue
				}
				break
			}
		}
	})
	rng := rand.New(rand.NewPCG(seed, 2))
	i := 0
	for o := range offers {
		dst := heaps[0][rng.IntN(100):][:o.n]
		ranks[0].Get(1, o.place, mem.Bytes(dst), 1, true)
		for sinks[0].all == i {
			stress.Pause(rng)
			ranks[0].Poll(1)
		}
		for j, b := range dst {
			if b != byte(i+j+j>>8) {
				t.Errorf("seed %d, copy %d of %d bytes: byte %d is %d", seed, i, o.n, j, b)
				break
			}
		}
		helped += int(ranks[0].peers[1].w.claims.Load() >> takenBits & takenMask)
		i++
		done <- true
	}
	all.Wait()
	if sinks[0].well != copies || sinks[1].all > 0 {
		t.Errorf("seed %d: %d copies ended well and the helper was told of %d, want %d and none", seed, sinks[0].well,
			sinks[1].all, copies)
	}
	return helped
}

// A copy does not wait for a dead rank that was invited to help.
func TestACopyEndsWithTheRankThatHelps(t *testing.T) {
	heaps := [2][]byte{make([]byte, 4*leastChunk), make([]byte, 4*leastChunk)}
	state, area := Alive, area(2)
	var sink ends
	sink.losses = losses{}
	a, err := New(Config{Local: 0, Ranks: []world.Rank{0, 1}, Area: area, Claim: claimed,
		Ring:  func(world.LocalRank) {},
		Heap:  func(local world.LocalRank) []byte { return heaps[local] },
		State: func(world.LocalRank) State { return state }}, &sink)
	if err != nil {
		t.Fatal(err)
	}
	a.Reaches(1)
	a.Get(1, 1, mem.Bytes(heaps[0]), 1, true)
	p := a.peers[1]
	a.invite(p, &p.moves.Items()[0])
	p.w.claims.Add(1 << takenBits) // it takes a chunk
	for range 10 {
		a.Poll(-1)
	}
	if sink.all > 0 {
		t.Fatal("the copy ended without a chunk that the other rank had taken")
	}
	state = Dead
	a.Arm() // before it sleeps, it looks who lives
	a.Poll(-1)
	if sink.all != 1 || sink.well != 0 || sink.losses[1] == nil {
		t.Errorf("after its death %d copies ended, %d of them well, lost: %v; want one with an error", sink.all,
			sink.well, sink.losses)
	}
}
