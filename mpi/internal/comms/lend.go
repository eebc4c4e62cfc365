package comms

import (
	"sync"
	"unsafe"

	"gompi/internal/core/lease"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/dtypes"
	"gompi/mpi/internal/typemap"
)

// Lease lets the face send and receive short messages itself; nil if not possible.
var Lease *lease.Lease

// Attach lets the face send and receive short messages itself, after Join. The result is the
// memory for the face, nil if not possible. mix leaves some messages to Go, for tests.
func Attach(mix bool) unsafe.Pointer {
	l := World.P2P.NewLease(mix)
	if l == nil {
		return nil
	}
	for t := range typemap.All() {
		if at, ok := t.Contiguous(2); ok && at == 0 {
			l.Size(t.Basic().ID, t.Size())
		}
	}
	dtypes.Arithmetic(l.Operator, l.Element)
	dtypes.Lend(l)
	Lease = l
	return unsafe.Pointer(l.Record())
}

// Stats turns the counting of calls on or off for a tool in this process; with -stats it is on.
// The results are the face's counters, the ranks in the job of this host's ranks, and whether the
// face is to count.
func Stats(tool bool) (counters, worlds unsafe.Pointer, on bool, err error) {
	return World.P2P.CountersForC(tool)
}

// Lend is called at the end of each call of the face, and lends all that the face has missed. If
// the face has tested requests, giveBack is called first.
func Lend(giveBack func()) {
	lendTeam()
	h, rank, tests, ok := Lease.Missed()
	if !ok {
		return
	}
	if tests {
		giveBack()
	}
	if c := Registry.Find(abi.Handle(h)); lends(c) {
		LendFor(c, rank)
	}
}

// freeing excludes the freeing of a communicator while its Team is being lent.
var freeing sync.Mutex

func lendTeam() {
	if !Lease.MissesTeam() {
		return
	}
	freeing.Lock()
	defer freeing.Unlock()
	if slot, ok := Lease.MissedTeam(); ok {
		if c := At(slot); lends(c) {
			c.P2P.LendTeam(Lease, slot)
		}
	}
}

// lends reports whether c is a communicator that can be lent.
func lends(c *Comm) bool { return c != nil && c.Inter == nil && c.P2P != nil && !c.Freed() }

// LendFor lends all that messages with a rank of c need, with every rank if rank is AnySource.
func LendFor(c *Comm, rank int) { c.P2P.Lend(slotOf(c), rank) }

// PlaceFor reserves a place among the face's receives for a short receive that is posted on c here,
// so that the face can take the receive over later.
func PlaceFor(c *Comm, r lease.Receive) (place int, ok bool) {
	r.Slot = slotOf(c)
	if c.Inter != nil || r.Slot >= lease.Channels || r.Bytes > mostHeld {
		return 0, false
	}
	return Lease.Take(r)
}

// mostHeld bounds the buffer of a receive that is lent to the face.
const mostHeld = 8 << 10

// slotOf returns the face's number of c.
func slotOf(c *Comm) int {
	if c == World {
		return 0
	}
	return int(c.Handle) - abi.FirstHandle + 1
}

// At returns the communicator that the face calls slot.
func At(slot int) *Comm {
	if slot == 0 {
		return World
	}
	return Registry.Find(abi.Handle(slot - 1 + abi.FirstHandle))
}

// unlend is called before c's handle passes to another communicator, perhaps while messages of
// c's are still under way.
func unlend(c *Comm) {
	if Lease != nil && c.Inter == nil {
		c.P2P.Unlend(Lease, slotOf(c))
	}
}

// Wake wakes a rank of this host to which the face has sent something.
func Wake(local int) { World.P2P.Wake(local) }
