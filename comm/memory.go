package comm

import (
	"gompi/comm/internal/engine"
	"gompi/internal/mem"
)

// Alloc returns n zeroed elements, aligned for vector code, in memory that the
// ranks of c can reach most cheaply. It is collective: all ranks of c call it
// with the same T and n, in the order of their collectives. Free gives the
// memory back, and so does Close.
func Alloc[T Scalar](c *Comm, n int) ([]T, error) {
	if n < 0 {
		return nil, c.fault(engine.Alloc.String(), -1, badArgument("%d elements: want 0 or more", n))
	}
	b, err := mem.Host.Alloc(mem.TypeOf[T](), n)
	if err != nil {
		return nil, c.fault(engine.Alloc.String(), -1, err)
	}
	return mem.Slice[T](b), nil
}

// Free gives back what Alloc returned; s must not be used any more. It is
// collective, as Alloc.
func Free[T Scalar](c *Comm, s []T) { mem.Host.Free(mem.Of(s)) }
