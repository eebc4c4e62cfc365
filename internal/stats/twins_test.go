package stats

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"gompi/mpi/libmpi/twins"
)

// Calls of several threads begin and end at random, in Go and in C.
func TestTheTimeInCallsInGoAndC(t *testing.T) {
	c := twins.Start(t)
	r := rand.New(rand.NewPCG(1, 2))
	var inGo counters
	inGo.clock = 20
	memory := unsafe.Slice((*byte)(unsafe.Pointer(&inGo)), unsafe.Sizeof(inGo))
	inC := bytes.Clone(memory)
	var begun []int64
	now := int64(1 << 40)
	for i := range 1000 {
		now += r.Int64N(5000)
		what := "enter"
		if len(begun) == 0 || len(begun) < 4 && r.IntN(2) == 0 {
			inGo.enter(now)
			c.Call("counters_enter", inC, uint64(now))
			begun = append(begun, now)
		} else {
			what = "exit"
			at, others := r.IntN(len(begun)), r.Int64N(17)-1
			inGo.exit(begun[at], now, others)
			c.Call("counters_exit", inC, uint64(begun[at]), uint64(now), uint64(others))
			begun = append(begun[:at], begun[at+1:]...)
		}
		if !bytes.Equal(memory, inC) {
			t.Fatalf("step %d, %s: Go leaves %x, C %x", i, what, memory, inC)
		}
	}
	if inGo.busy.Load() == 0 {
		t.Error("no time was counted")
	}
}
