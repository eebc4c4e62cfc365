package core

import (
	"unsafe"

	"gompi/internal/calls"
	"gompi/internal/core/lease"
	"gompi/internal/mem"
	"gompi/internal/world"
)

// NewLease returns a Lease by which C sends bytes and does collectives, or nil if the ranks of this
// host share no memory. mix has C leave some of the calls to Go.
func (c *Comm) NewLease(mix bool) *lease.Lease {
	if c.memory.Host == nil {
		return nil
	}
	l, _ := c.e.NewLease(mem.U8, mix) // Go does all calls without
	return l
}

// Lend lends the communicator, which C calls slot, for messages with rank, or all if that is
// message.Any.
func (c *Comm) Lend(slot, rank int) { c.ch.Lend(slot, rank) }

// LendTeam lends the communicator, which C calls slot, for short collectives, if C can do them and
// none is under way.
func (c *Comm) LendTeam(l *lease.Lease, slot int) {
	if c.exec.Shared != nil && c.round.MayLend(l) {
		locals := func() []world.LocalRank { return c.locals(c.hosts()[0]) } // all members are on this host
		c.ops.WhenIdle(func() { c.round.Lend(l, slot, locals, c.mostLent()) })
	}
}

// Unlend ends both: slot passes to another communicator.
func (c *Comm) Unlend(l *lease.Lease, slot int) {
	l.Exclude(slot)
	c.round.Unlend()
}

// Wake wakes a local rank that C has sent something to.
func (c *Comm) Wake(local int) { c.memory.Host.SHM.Wake(world.LocalRank(local)) }

// CountersForC turns the counting of calls on or off for a tool; with gompirun -stats it is on. The
// results are C's counters (a counters of package stats, nil if nothing was counted yet), the world
// ranks by local rank, as int32, and whether C counts.
func (c *Comm) CountersForC(tool bool) (counters, worlds unsafe.Pointer, on bool, err error) {
	if c.stats == nil {
		return nil, nil, false, nil
	}
	if err = c.stats.Turn(tool); err == nil {
		counters, worlds = c.stats.ForC()
	}
	return counters, worlds, c.stats.On(), err
}

// mostLent returns the collectives that C may do, by their largest size.
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
