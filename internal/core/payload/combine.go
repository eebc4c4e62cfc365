package payload

import "gompi/internal/mem"

// A Combine makes a receive reduce by an operator: dst = own op in, or in op own if Left is true.
// Functions of the user have no Combine.
type Combine struct {
	Own  mem.Buffer
	Op   mem.Op // which messages carry
	Left bool
}

// Combine makes m, a receive, combine the payload with other operands.
func (m *Move) Combine(c *Combine) { m.combine = c }

// Combines reports whether m reduces the received elements.
func (m *Move) Combines() bool { return m.combine != nil }

// reduce combines the bytes in, which are at offset off of the message.
func (c *Combine) reduce(dst mem.Buffer, off int, in mem.Buffer) error {
	width := dst.ElemSize()
	i, j := off/width, (off+in.Size())/width
	in = mem.HostLike(dst, j-i, in.HostSlice())
	dst, own := dst.Slice(i, j), c.Own.Slice(i, j)
	if c.Left {
		return mem.Reduce(c.Op, dst, in, own)
	}
	return mem.Reduce(c.Op, dst, own, in)
}
