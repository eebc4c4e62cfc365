package core

import (
	"unsafe"

	"gompi/internal/calls"
	"gompi/internal/core/lease"
	"gompi/internal/mem"
	"gompi/internal/world"
)

// Attach lets C use l for messages of bytes and collectives, and reports whether it can: ranks of
// this host share memory. mix has it leave some of them to Go.
func (c *Comm) Attach(l *lease.Lease, mix bool) bool {
	if c.memory == nil {
		return false
	}
	c.e.Attach(l, mem.U8, mix)
	return true
}

// Lend lends the communicator, which C calls slot, for messages with rank, or all if that is
// message.Any.
func (c *Comm) Lend(slot, rank int) { c.ch.Lend(slot, rank) }

// LendTeam lends the communicator, which C calls slot, for short collectives, if C can do them and
// none is under way.
func (c *Comm) LendTeam(l *lease.Lease, slot int) {
	if c.exec.Shared != nil && c.round.MayLend(l) {
		c.ops.whenIdle(func() { c.round.Lend(l, slot, c.allLocals, c.mostLent()) })
	}
}

// Unlend ends both: slot is that of another communicator from now on.
func (c *Comm) Unlend(slot int) {
	c.ch.Unlend(slot)
	c.round.Unlend()
}

// TakeOver calls f for the receives that C holds, in order, to post them. Nothing is lent until the
// lease Holds none.
func (c *Comm) TakeOver(f func(lease.Receive)) { c.e.TakeOver(f) }

// Claim takes back what is lent and has the lease Hold something, for later calls of all threads to
// wait for. It reports false, and does nothing, if C holds receives. Nothing is lent until
// EndClaim.
func (c *Comm) Claim() bool { return c.e.Claim() }

// EndClaim ends a Claim. holds says whether C holds receives now.
func (c *Comm) EndClaim(holds bool) { c.e.EndClaim(holds) }

// Wake wakes a local rank that C has sent something to.
func (c *Comm) Wake(local int) { c.memory.shm.Wake(world.LocalRank(local)) }

// CountersForC turns the counting of calls on or off for a tool; with gompirun -stats it is on. It
// returns where C counts them, a counters of package stats, nil if nothing was counted yet, the
// ranks in the job by local rank, as int32, and whether C is to count.
func (c *Comm) CountersForC(tool bool) (counters, worlds unsafe.Pointer, on bool, err error) {
	if c.stats == nil {
		return nil, nil, false, nil
	}
	if err = c.stats.Turn(tool); err == nil {
		counters, worlds = c.stats.ForC()
	}
	return counters, worlds, c.stats.On(), err
}

// allLocals returns the local ranks of all members, which are on this host.
func (c *Comm) allLocals() []world.LocalRank { return c.locals(c.hosts()[0]) }

// mostLent returns which collectives C may do.
func (c *Comm) mostLent() (most lease.Most) {
	for k := range most {
		most[k] = -1
	}
	ordered := c.exec.Paths.KeepsOrder(mem.Sum)
	for _, k := range calls.Exchanges {
		if k.InC() && !(k.Reduces() && ordered) {
			most[k] = int32(c.exec.Paths.InOneStep(k, lease.MostBytes))
		}
	}
	return most
}
