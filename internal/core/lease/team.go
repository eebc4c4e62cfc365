package lease

import (
	"sync/atomic"
	"unsafe"

	"gompi/internal/calls"
	"gompi/internal/core/shmsync"
	"gompi/internal/mem"
	"gompi/internal/world"
)

// A Team is C's state for short collectives of a communicator all of whose ranks share memory.
// The Team has a word of its own, as collectives take no lock.
//
// C does a collective as package shmcoll does collectives of a single step. If C has to wait long
// for another rank, or finds another call there, C sets its cursors back, and Go does the
// collective from its beginning: Go stores the same data once more where others may have read it
// already.
//
//c:struct gompi_team
type Team struct {
	word   atomic.Uint32
	broken atomic.Uint32 // the communicator is

	me, size int32
	looks    uint32 // at another rank's flag, at most
	left     uint32 // collectives until C has to enter Go
	most     Most

	Cursors
	before [3]uint64 // C's: the last call's Digest, and the previous Call
	comm   uint64
	//c:type struct gompi_record *
	recorder unsafe.Pointer // flight recorder: its ring
	//c:type uint64_t *
	next unsafe.Pointer // and its next ticket

	//c:type struct gompi_block *
	blocks [Members]unsafe.Pointer // of memory, by member
	locals [Members]world.LocalRank
	uses   uint64 // of the other's block, in a Team of two
	//c:type struct gompi_bounce *
	rings [2]unsafe.Pointer // of the small bounce buffer and the next

	// C's: the place of the last step's payload in a block, 0 if in the head; 1 if the two members
	// have each other's places; and the bounce buffer, with its previous next and n.
	place, exchanged uint64
	//c:type struct gompi_bounce *
	ring                unsafe.Pointer
	nextBefore, nBefore uint64
}

// Members is the largest number of ranks of a communicator whose collectives C does.
//
//c:const GOMPI_LEASE_
const Members = 32

// Cursors are the fields that a collective changes: of shmsync.Team, and of round.Round.
type Cursors struct {
	shmsync.Cursors
	Digest, Seq uint64
	Call        [2]uint64 // the last call, as calls are compared
}

// MostBytes bounds the bytes of collectives in C: of all ranks' blocks, or of the vector.
//
//c:const GOMPI_LEASE_
const MostBytes = 4 << 10

// Most bounds, by kind, the bytes of collectives in C; negative if C does none of the kind.
type Most [kinds]int32

// kinds is more than the kind of any call that C does.
const kinds = calls.Alltoall + 1

// A Loan has the fields that stay as long as the communicator.
type Loan struct {
	Me       int
	Looks    int // at another rank's flag, before C calls Go
	Comm     uint64
	Recorder unsafe.Pointer // of as many records as C knows of
	Next     unsafe.Pointer
	Blocks   []unsafe.Pointer
	Uses     uint64 // of the other's block, in a Team of two
	Locals   []world.LocalRank
	Rings    [2]unsafe.Pointer // of the small bounce buffer and the next
}

// A TeamLease is a Team that is lent, or was.
type TeamLease struct {
	*Team
	lease *Lease
	slot  int
	step  uint64            // when lent
	out   bool              // lent
	rings [2]unsafe.Pointer // for the garbage collector, which sees no memory of C's, and moves nothing
}

// Team prepares the loan of the communicator with number slot.
func (l *Lease) Team(slot int, n *Loan) *TeamLease {
	t := &l.rec.teams[slot]
	t.broken.Store(0)
	t.me, t.size, t.looks, t.comm = int32(n.Me), int32(len(n.Blocks)), uint32(n.Looks), n.Comm
	t.recorder, t.next = n.Recorder, n.Next
	l.pinner.Pin(n.Next)
	copy(t.blocks[:], n.Blocks)
	copy(t.locals[:], n.Locals)
	t.rings, t.uses = n.Rings, n.Uses
	return &TeamLease{Team: t, lease: l, slot: slot, rings: n.Rings}
}

// Lend lends the Team, or lends it again, unless it is lent.
func (t *TeamLease) Lend(c Cursors, most Most) {
	if t.out {
		return
	}
	t.Cursors, t.most, t.left, t.step, t.out = c, most, operations, c.Step, true
	t.word.Store(lent)
}

// Slot returns C's number of the communicator.
func (t *TeamLease) Slot() int { return t.slot }

// TakeBack returns the cursors, with ok, after a thread inside C has finished its collective. If
// C has used the Team, MissedTeam reports that, for Go to lend the Team again.
func (t *TeamLease) TakeBack() (c Cursors, ok bool) {
	if !t.out {
		return Cursors{}, false
	}
	t.out = false
	if takeBack(&t.word) && t.Step != t.step {
		t.lease.rec.missedTeam.Store(uint32(t.slot) + 1)
	}
	return t.Cursors, true
}

// Break has C leave all collectives to Go, as the communicator is broken.
func (t *TeamLease) Break() { t.broken.Store(1) }

// MissesTeam reports whether MissedTeam has something to return.
func (l *Lease) MissesTeam() bool { return l.rec.missedTeam.Load() != 0 }

// MissedTeam returns the number of a communicator, once, whose Team C has missed.
func (l *Lease) MissedTeam() (slot int, ok bool) {
	slot = int(l.rec.missedTeam.Swap(0)) - 1
	return slot, slot >= 0
}

// Element sets the type of a datatype's elements in reductions.
func (l *Lease) Element(datatype int, t mem.Type) {
	if datatype < Sizes {
		l.rec.elements[datatype] = uint8(t)
	}
}

// Operator sets the operator with a number.
func (l *Lease) Operator(operator int, op mem.Op) { l.rec.operators[operator] = uint8(op) }

// Operators bounds the numbers of operators that C knows.
//
//c:const GOMPI_LEASE_
const Operators = 64
