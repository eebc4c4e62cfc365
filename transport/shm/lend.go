package shm

import (
	"unsafe"

	"gompi/internal/world"
	"gompi/transport"
)

// This file lends the ends of rings to C, which writes and reads short frames as SendNow and
// RecvNow do: mpi/libmpi/face/rings.h has the functions of the same names. C uses a ring's position
// integers in place. It never grows a ring, never announces this rank to a peer, and begins no
// record that it cannot finish, and it copies plainly, to a cell, or as often as writer.plain lets
// it. In Go and in C alike a record's word is stored behind the record, and whether the reader
// sleeps is looked up behind that.

// lentBytes is the longest payload that others write.
const lentBytes = 8<<10 - 1

// Ends implements transport.Lender.
func (t *Transport) Ends(rank world.Rank) (e transport.Ends, local world.LocalRank, ok bool) {
	p := t.talker(rank)
	if p == nil || p.w.mem == nil {
		return e, 0, false
	}
	return transport.Ends{
		Writer: unsafe.Pointer(&p.w), Reader: unsafe.Pointer(&p.r),
		Behind: unsafe.Pointer(&p.behind), Parked: unsafe.Pointer(&t.lines[p.local].parked),
	}, p.local, true
}

// MayLend implements transport.Lender.
func (t *Transport) MayLend(rank world.Rank) bool {
	p := t.talker(rank)
	return p != nil && !p.lost && p.out.Empty() && p.in.Left() == 0
}

// Lend implements transport.Lender. Those that a peer wakes are asleep: this rank is not.
func (t *Transport) Lend() (most int) {
	if t.closing || t.closed || t.moving > 0 {
		return 0
	}
	if t.disarm() {
		t.idle = -1 // the next Poll looks at all peers
	}
	return lentBytes
}
