package comm

import (
	"gompi/comm/internal/call"
	"gompi/comm/internal/node"
	"gompi/internal/mem"
)

// Where collectives of device memory go. In a room whose members may have devices,
// each collective that is long enough begins with a step in which all tell where
// their buffers are. If all are in the memory of devices that reach each other, it is
// done there (package node, Devices); if some are, it goes through pinned host memory in
// pieces (see pipe.go). What is short is staged, each rank's for itself. What is asked,
// and when, follows from what all ranks know. Where NCCL is wanted, it comes first (see
// library.go).

// deviceLeast is the bytes of a collective from which on its ranks ask each other.
// Shorter ones are staged: three words of the hosts and three works of a device take
// longer than two copies. The number is a guess until a GPU has been measured; it is above
// what rooms do in one step.
const deviceLeast = 32 << 10

// furnishDevices makes the room of c's ranks on this host able to use their devices.
func (c *Comm) furnishDevices(room *node.Room) {
	if room != nil && !c.onHost {
		c.devices = room.Devices(c.arena, func(why error) {
			c.log.Warn("collectives of device memory go through host memory", "comm", c.name, "err", why)
		})
	}
}

// mayHaveDevices looks among all ranks of c for one that may have buffers on devices.
func (c *Comm) mayHaveDevices() bool {
	for r := range c.Size() {
		if c.withDevices[c.ch.World(r)] {
			return true
		}
	}
	return false
}

// meet reports whether o has buffers on devices, if there can be some and it is long,
// and whether it is done on them.
func (c *Comm) meet(o *call.Call) (some, reach bool, err error) {
	if c.devices == nil || !long(o, c.Size()) {
		return false, false, nil
	}
	from, to := o.Operands(c.Rank())
	some, reach, err = c.devices.Meet(from, to, suitsDevices(o, c.table.Deterministic))
	if reach {
		c.devices.Carry(from, to)
	}
	return some, reach, err
}

// long reports whether ranks ask each other before o: it is long, or no rank knows how long
// it is.
func long(o *call.Call, ranks int) bool {
	return o.Kind.LocalCounts() || o.Elements(ranks)*o.Type.Size() >= deviceLeast
}

// suitsDevices reports whether o needs no certain order and no function of the user's.
func suitsDevices(o *call.Call, ordered bool) bool {
	return !o.Kind.Reduces() || !ordered && o.Op.Kind != mem.Custom
}

// closeDevices lets go of other ranks' device memory. The own is freed when no other
// rank can see it any more, at the next occasion.
func (c *Comm) closeDevices() {
	if c.devices != nil {
		c.memory.pool.WhenVacant(c.block, c.devices.Close())
	}
}
