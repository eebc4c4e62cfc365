package twins_test

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"gompi/internal/core/lease"
	"gompi/internal/core/peers"
	"gompi/internal/core/shmsync"
	"gompi/mpi/libmpi/twins"
	"gompi/transport"
)

func TestHeadersOfFrames(t *testing.T) {
	c := twins.Start(t)
	for _, h := range []transport.Header{
		{},
		{Flags: 0xff, Tag: -1, Comm: 1<<64 - 1, Len: transport.MaxPayload},
		{Flags: 5, Tag: 1<<31 - 1, Comm: 0x0102030405060708, Len: 0x1112131415},
	} {
		var inGo, inC [transport.HeaderSize]byte
		h.Kind = transport.Eager
		h.Encode(inGo[:])
		if c.Call("header_encode", inC[:], uint64(h.Flags), uint64(h.Tag), h.Comm, uint64(h.Len)); inGo != inC {
			t.Errorf("%+v: Go stores %x, C %x", h, inGo, inC)
		}
	}
}

func TestCostsOfMessages(t *testing.T) {
	c := twins.Start(t)
	for n := range 1 << 13 {
		if inGo, inC := peers.Cost(n), c.Call("cost", nil, uint64(n)); uint64(inGo) != inC {
			t.Errorf("a message of %d bytes costs %d in Go and %d in C", n, inGo, inC)
		}
	}
}

func TestDigestsOfCalls(t *testing.T) {
	c := twins.Start(t)
	r := rand.New(rand.NewPCG(1, 2))
	var inGo, inC uint64
	for range 100 {
		call := shmsync.EncodedCall{A: r.Uint64(), B: r.Uint64()}
		if inGo, inC = call.Digest(inGo), c.Call("encoded_call_digest", nil, inC, call.A, call.B); inGo != inC {
			t.Fatalf("behind %+v the digest is %x in Go and %x in C", call, inGo, inC)
		}
	}
}

// Locks are taken and given back at random, also where C refuses since it would have to wait.
func TestLocksOfWindows(t *testing.T) {
	c := twins.Start(t)
	r := rand.New(rand.NewPCG(3, 4))
	var control lease.Control
	memory := unsafe.Slice((*byte)(unsafe.Pointer(&control)), unsafe.Sizeof(control))
	var held []lease.Hold
	inC := make([]byte, len(memory))
	refused := 0
	for i := range 1000 {
		copy(inC, memory)
		what := "End"
		if how := lease.ForReading + lease.Hold(r.IntN(2)); r.IntN(2) == 0 || len(held) == 0 {
			what = "Arrive and Begin"
			var after lease.Control
			copy(unsafe.Slice((*byte)(unsafe.Pointer(&after)), unsafe.Sizeof(after)), memory)
			may := after.MayBegin(after.Arrive(), how)
			got := c.Call("control_arrive", inC, uint64(how)) != 0
			if got != may {
				t.Fatalf("step %d: C begins %v, Go %v", i, got, may)
			}
			if may {
				c.Call("control_begin", inC, uint64(how))
				control.Arrive()
				control.Begin(how)
				held = append(held, how)
			} else {
				refused++
			}
		} else {
			how := held[0]
			held = held[1:]
			control.End(how)
			c.Call("control_end", inC, uint64(how))
		}
		if string(inC) != string(memory) {
			t.Fatalf("step %d, %s: Go leaves %x, C %x", i, what, memory, inC)
		}
	}
	if refused == 0 {
		t.Error("C never had to wait")
	}
}
