package call

import (
	"gompi/internal/calls"
	"gompi/internal/mem"
)

// Roles returns the use of Send and Recv by c on a rank.
func (c *Call) Roles(rank int) (send, recv calls.Role) {
	t, root := &calls.Table[c.Kind], rank == c.Root
	return t.Send.On(root), t.Recv.On(root)
}

// Operands returns the buffers that a rank sends from and receives to. An unused buffer is empty.
func (c *Call) Operands(rank int) (from, to mem.Buffer) {
	send, recv := c.Roles(rank)
	if send == calls.Read {
		from = c.Send
	}
	switch recv {
	case calls.Unused:
	case calls.Read: // by the root of a bcast
		from = c.Recv
	default:
		to = c.Recv
	}
	return from, to
}
