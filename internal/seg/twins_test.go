package seg

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"gompi/mpi/libmpi/twins"
)

// Calls are recorded by Go and by C, where other calls are under way, have ended, or are written
// for ever, as by a thread that a signal's handler has left in the midst.
func TestRecordsOfCallsInGoAndC(t *testing.T) {
	c := twins.Start(t)
	r := rand.New(rand.NewPCG(1, 2))
	var memory struct {
		ring [Recorded]record
		next uint64
	}
	rec := &Recorder{ring: &memory.ring, next: 1}
	view := func() []byte {
		memory.next = rec.next
		return bytes.Clone(unsafe.Slice((*byte)(unsafe.Pointer(&memory)), unsafe.Sizeof(memory)))
	}
	unrecorded := 0
	for i := range 1000 {
		switch r.IntN(20) {
		case 0: // one that goes on
			rec.BeginCollective(1, 2, 3, 4, 5)
		case 1: // one that another thread begins meanwhile
			next := rec.next
			rec.EndCall(rec.BeginCollective(1, 2, 3, 4, 5))
			rec.next = next
		case 2:
			if at := &memory.ring[(rec.next+3)%Recorded]; i < 500 {
				at.stamp = at.stamp&^3 | busy
			}
		}
		inC := view()
		comm, a, b, n, seq := r.Uint64(), r.Uint64(), r.Uint64(), r.IntN(1<<20), r.Uint64()
		ticket := rec.BeginCollective(comm, a, b, n, seq)
		if ticket == 0 {
			unrecorded++
		}
		rec.EndCall(ticket)
		if c.Call("recorder_begin", inC, comm, a, b, uint64(n), seq); !bytes.Equal(inC, view()) {
			t.Fatalf("call %d, ticket %d: Go leaves\n%x, C\n%x", i, ticket, view(), inC)
		}
	}
	if unrecorded == 0 {
		t.Error("no record was busy")
	}
}
