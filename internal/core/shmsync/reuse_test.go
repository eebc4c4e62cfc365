package shmsync

import (
	"errors"
	"sync/atomic"
	"testing"
	"unsafe"
)

// A failed port has learned that the communicator is broken.
type failed struct{ Port }

var errBroken = errors.New("broken")

func (failed) Looks() int                              { return 1 }
func (failed) Await(*atomic.Uint64, uint64, int) error { return errBroken }

// A member that alone has made a Team does not write to the other's bounce buffer when its block
// serves another Team, whose steps have been read.
func TestNoMemberWritesToABlockThatServesAnotherTeam(t *testing.T) {
	var parts []Part
	for range 2 {
		words := make([]uint64, BlockSize/8)
		parts = append(parts, Part{flags: (*flags)(unsafe.Pointer(&words[0])), uses: 1})
	}
	other := parts[1].flags
	for uses, want := range map[uint64]error{1: nil, 3: errBroken} {
		team := New(0, parts, nil, 1<<20, Gate{}, failed{})
		team.Begin(&EncodedCall{A: 1}, 1, false)
		var s uint64
		for range smallSize/smallMost + 1 { // the last is in the second round
			s = team.Next(1)
			team.Lay(s, smallMost, false, true)
		}
		other.uses.Store(uses)
		other.consumed.Store(s)
		if &team.Payload(0, s, 0, 1)[0] != (*byte)(unsafe.Add(unsafe.Pointer(other), smallAt)) {
			t.Fatal("the buffers have not been exchanged")
		}
		if _, err := team.Acquire(s, true); err != want {
			t.Errorf("with %d uses of the other block: %v, want %v", uses, err, want)
		}
	}
}
