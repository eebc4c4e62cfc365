package comms

import (
	"fmt"
	"slices"

	"gompi/internal/core"
	"gompi/mpi/internal/abi"
)

// Name returns the name for messages.
func (c *Comm) Name() string {
	if c == nil {
		return "a communicator that is not valid"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.name == "" && c.P2P != nil {
		return c.P2P.Name()
	}
	return c.name
}

// nameOf returns the name of the core communicator with an id, for reports of long waits. An
// unnamed communicator shows its number of ranks. Holders of c.mu never block.
func nameOf(id uint64) (name string, persistent bool) {
	is := func(d *core.Comm) bool { return d.ID() == id }
	find := func(c *Comm) {
		if name != "" || c.P2P == nil {
			return
		}
		c.mu.Lock()
		persistent = slices.ContainsFunc(c.private, is)
		named := c.name != ""
		c.mu.Unlock()
		if !persistent && !slices.ContainsFunc(c.parts(), is) {
			return
		}
		if name = c.Name(); !named {
			name += fmt.Sprintf(" (%d ranks)", c.P2P.Size())
		}
	}
	find(World)
	find(self)
	Registry.Each(find)
	owned.Range(func(d, _ any) bool {
		if c := d.(*core.Comm); is(c) {
			name, persistent = c.Name(), false
		}
		return name == ""
	})
	return name, persistent
}

func CommSetName(c *Comm, name abi.Text) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.name = name.String()
	return nil
}

func CommGetName(c *Comm, name abi.Text) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return name.Set(c.name, abi.C.MaxObjectName), nil
}
