package comms

import (
	"sync"
	"unsafe"

	"gompi/internal/core"
	"gompi/internal/core/lease"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/datatype"
	"gompi/mpi/internal/dtypes"
	"gompi/mpi/internal/ops"
	"gompi/mpi/internal/table"
)

// lent is what lets the face send and receive short messages itself; nil if it may not.
var lent *lease.Lease

// Attach lets the face send and receive short messages itself, after Join. It returns what the face
// needs for that, nil if it cannot. mix leaves some of them to Go, for tests.
func Attach(mix bool) unsafe.Pointer {
	l, err := lease.New()
	if err != nil {
		return nil // all works without
	}
	for t := range datatype.All() {
		if at, ok := t.Contiguous(2); ok && at == 0 {
			l.Size(t.Basic().ID, t.Size())
		}
	}
	ops.Arithmetic(l.Operator, l.Element)
	if !World.P2P.Attach(l, mix) {
		return nil
	}
	dtypes.Lend(func(h abi.Handle, s lease.Shape) { l.Derived(int(h)-table.FirstHandle, s) })
	lent = l
	return unsafe.Pointer(l.Record())
}

// Stats turns the counting of calls on or off for a tool in this process; with -stats it is on. It
// returns where the face counts its calls, and where the ranks in the job of this host's ranks are,
// and whether it is to.
func Stats(tool bool) (counters, worlds unsafe.Pointer, on bool, err error) {
	return World.P2P.CountersForC(tool)
}

// Lends reports whether the face sends and receives short messages itself.
func Lends() bool { return lent != nil }

// Lend is called at the end of each call of the face. It lends what the face has lacked. When that
// has tested requests, giveBack is called first.
func Lend(giveBack func()) {
	lendTeam()
	h, rank, tests, ok := lent.Missed()
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

// freeing is held while a communicator's Team is lent, or it is freed.
var freeing sync.Mutex

func lendTeam() {
	if !lent.MissesTeam() {
		return
	}
	freeing.Lock()
	defer freeing.Unlock()
	if slot, ok := lent.MissedTeam(); ok {
		if c := at(slot); lends(c) {
			c.P2P.LendTeam(lent, slot)
		}
	}
}

// lends reports whether c is a communicator that can be lent.
func lends(c *Comm) bool { return c != nil && c.Inter == nil && c.P2P != nil && !c.Freed() }

// LendFor lends what messages with a rank of c need, all if that is AnySource.
func LendFor(c *Comm, rank int) { c.P2P.Lend(slotOf(c), rank) }

// Holds reports whether the face holds receives.
func Holds() bool { return lent != nil && lent.Holds() }

// A Held is a receive that the face holds.
type Held = lease.Receive

// MostHeld is how many it can hold.
const MostHeld = lease.Held

// TakeOver calls f for each receive that the face holds, with its communicator, in order.
func TakeOver(f func(Held, *Comm)) {
	World.P2P.TakeOver(func(r lease.Receive) { f(r, at(r.Slot)) })
}

// Claim has whoever calls from now on wait for what the face is to hold, as if it held something.
// It reports false if that holds receives. EndClaim ends it, and is told whether it holds some now.
func Claim() bool         { return World.P2P.Claim() }
func EndClaim(holds bool) { World.P2P.EndClaim(holds) }

// GiveBack gives receives that are posted to the face, in order, and reports whether it has: only
// if nothing else is under way. It has been Claimed.
func GiveBack(rs []core.Request, places []int) bool {
	if !World.P2P.Withdraw(rs) {
		return false
	}
	lent.Hold(places)
	return true
}

// PlaceFor finds a place among the face's receives for one of c that is posted here: a short one,
// so that the face can have it later.
func PlaceFor(c *Comm, r Held) (place int, ok bool) {
	r.Slot = slotOf(c)
	if c.Inter != nil || r.Slot >= lease.Channels || r.Bytes > mostHeld {
		return 0, false
	}
	return lent.Take(r)
}

// mostHeld is how long the buffer of a receive is at most that the face gets.
const mostHeld = 8 << 10

// FreeHeld gives the place of a receive that the face has held back to it.
func FreeHeld(place int) { lent.Free(place) }

// slotOf returns what the face calls c.
func slotOf(c *Comm) int {
	if c == World {
		return 0
	}
	return int(c.Handle) - table.FirstHandle + 1
}

// at returns the communicator that the face calls slot.
func at(slot int) *Comm {
	if slot == 0 {
		return World
	}
	return Registry.Find(abi.Handle(slot - 1 + table.FirstHandle))
}

// unlend is called before c's handle becomes that of another communicator, perhaps while messages
// of c's are still under way.
func unlend(c *Comm) {
	if lent != nil && c.Inter == nil {
		c.P2P.Unlend(slotOf(c))
	}
}

// LendWindow has the face access the window with a handle itself, until UnlendWindow.
func LendWindow(h abi.Handle, w *lease.Window) {
	if lent != nil {
		lent.Window(int(h)-table.FirstHandle, w)
	}
}

// UnlendWindow is called before the handle becomes that of another window.
func UnlendWindow(h abi.Handle, w *lease.Window) {
	if lent != nil {
		lent.FreeWindow(int(h)-table.FirstHandle, w)
	}
}

// Wake wakes a rank of this host to which the face has sent something.
func Wake(local int) { World.P2P.Wake(local) }
