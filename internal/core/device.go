package core

import (
	"gompi/internal/core/exec"
)

// Paths of collectives of device memory. Where ranks may have devices, a long collective begins
// with an exchange of where all ranks' buffers are. If some are on devices, the collective goes
// through pinned host memory in chunks (package exec). In a short collective each rank stages its
// own buffers, without an exchange. Where NCCL is wanted, it comes first.

// setUpNCCL prepares collectives by NCCL, if NCCL is wanted and all ranks may have devices.
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

// mayHaveDevices reports whether any rank of c may have buffers on devices.
func (c *Comm) mayHaveDevices() bool {
	for r := range c.Size() {
		if c.withDevices[c.ch.World(r)] {
			return true
		}
	}
	return false
}
