package comm

import (
	"gompi/comm/internal/devcoll"
	"gompi/comm/internal/exec"
	"gompi/comm/internal/shmcoll"
)

// Where collectives of device memory go. In a room whose members may have devices,
// each collective that is long enough begins with a step in which all tell where
// their buffers are. If all are in the memory of devices that reach each other, it is
// done there (package devcoll); if some are, it goes through pinned host memory in
// pieces (package exec). What is short is staged, each rank's for itself. What is asked,
// and when, follows from what all ranks know. Where NCCL is wanted, it comes first.

// furnishDevices makes the room of c's ranks on this host able to use their devices.
func (c *Comm) furnishDevices(room *shmcoll.Comm) {
	if room != nil && !c.onHost {
		c.exec.Devices = devcoll.New(&room.Team, c.arena, func(why error) {
			c.warn("collectives of device memory go through host memory", why)
		})
	}
}

// furnishNCCL makes c able to use the devices' own library, if it is wanted and all ranks may have
// devices.
func (c *Comm) furnishNCCL() {
	if c.wantsNCCL && c.Size() > 1 && c.withoutDevices() < 0 {
		c.exec.NCCL = exec.NewNCCL(&c.exec, c.boot.Info().Node, c.ch.Host, c.warn)
	}
}

// withoutDevices returns a rank that has no devices, -1 if there is none.
func (c *Comm) withoutDevices() int {
	for r := range c.Size() {
		if !c.withDevices[c.ch.World(r)] {
			return r
		}
	}
	return -1
}

func (c *Comm) warn(what string, why error) { c.log.Warn(what, "comm", c.name, "err", why) }

// mayHaveDevices looks among all ranks of c for one that may have buffers on devices.
func (c *Comm) mayHaveDevices() bool {
	for r := range c.Size() {
		if c.withDevices[c.ch.World(r)] {
			return true
		}
	}
	return false
}

// closeDevices lets go of other ranks' device memory. The own is freed when no other
// rank can see it any more, at the next occasion.
func (c *Comm) closeDevices() {
	if c.exec.Devices != nil {
		c.memory.pool.WhenVacant(c.block, c.exec.Devices.Close())
	}
}
