package comm

import (
	"gompi/comm/internal/devcoll"
	"gompi/comm/internal/exec"
	"gompi/comm/internal/shmcoll"
)

// Where collectives of device memory go. Where ranks of one host may have devices, a collective
// that is long enough begins with an exchange: all ranks tell where their buffers are. If all
// buffers are in the memory of devices that reach each other, the collective is done there (package
// devcoll). If only some are, it goes through pinned host memory in chunks (package exec). In a
// short collective each rank stages its own buffer, without an exchange. Where NCCL is wanted, it
// comes first.

// setUpDevices prepares collectives on the devices of c's ranks on this host.
func (c *Comm) setUpDevices(shared *shmcoll.Comm) {
	if shared != nil && !c.onHost {
		c.exec.Devices = devcoll.New(&shared.Team, c.arena, func(why error) {
			c.warn("collectives of device memory go through host memory", why)
		})
	}
}

// setUpNCCL prepares collectives by NCCL, if it is wanted and all ranks may have
// devices.
func (c *Comm) setUpNCCL() {
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
