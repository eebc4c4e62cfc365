package comm

import (
	"gompi/internal/boot"
	"gompi/internal/poll"
)

// NetworkFabric is how Init connects a process, for ranks that are goroutines.
func NetworkFabric(b boot.Boot) (Fabric, error) {
	set, err := poll.New(-1)
	if err != nil {
		return Fabric{}, err
	}
	return Config{}.network(b, set)
}

// ContextID returns the number by which frames name c.
func (c *Comm) ContextID() uint64 { return c.ch.ID }

// Launcher returns what connects this rank with its launcher.
func (c *Comm) Launcher() boot.Boot { return c.boot }
