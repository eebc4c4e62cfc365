package comms

import (
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/attrs"
)

func CommSetAttr(c *Comm, number int, value abi.Addr) error {
	return c.Put(attrs.KindComm, c.Handle, number, value, false)
}

func CommGetAttr(c *Comm, number int) (abi.Addr, bool, error) {
	if value, ok := attrs.OfEnvironment(number); ok {
		return value, value != 0, nil
	}
	return c.Get(attrs.KindComm, number)
}

func CommDeleteAttr(c *Comm, number int) error {
	return c.Remove(attrs.KindComm, c.Handle, number)
}
