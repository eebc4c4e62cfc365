package comm

import (
	"gompi/comm/internal/call"
	"gompi/comm/internal/node"
	"gompi/comm/internal/path"
)

// Where collectives of device memory go. In a room whose members may have devices,
// each collective that is long enough begins with a step in which all tell where
// their buffers are. If all are in the memory of devices that reach each other, it is
// done there (package node, Devices); if some are, it goes through pinned host memory in
// pieces (see pipe.go). What is short is staged, each rank's for itself. What is asked,
// and when, follows from what all ranks know. Where NCCL is wanted, it comes first (see
// library.go).

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

// whereBuffersAre asks all ranks where their buffers of o lie, as p wants: those of one host
// through their shared memory, those of several by an allreduce. On several hosts only an
// allreduce may be done on devices, those of each host on such that reach each other.
func (c *Comm) whereBuffersAre(p *path.Path, o *call.Call) (path.Where, error) {
	from, to := o.Operands(c.Rank())
	all := p.Ask == path.AllOnDevices
	if p.OnHost().Via == path.Shm {
		some, reach, err := c.devices.Meet(from, to, all)
		return path.Where{All: reach, Any: some}, err
	}
	some := !from.IsHost() || !to.IsHost()
	reach := all && some && o.Send.Space() == o.Recv.Space()
	if all && c.devices != nil {
		var err error
		if _, reach, err = c.devices.Meet(o.Send, o.Recv, true); err != nil {
			return path.Where{}, err
		}
	}
	word := []int32{0, 0}
	if some {
		word[0] = -1
	}
	if reach {
		word[1] = 1
	}
	err := c.runOnHost(new(call.Call).Allreduce(Of(word), Of(word), builtin(Min)))
	return path.Where{All: word[1] > 0, Any: word[0] < 0}, err
}

// closeDevices lets go of other ranks' device memory. The own is freed when no other
// rank can see it any more, at the next occasion.
func (c *Comm) closeDevices() {
	if c.devices != nil {
		c.memory.pool.WhenVacant(c.block, c.devices.Close())
	}
}
