package comms

import (
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/attrs"
)

func CommCreateKeyval(copyFn, deleteFn, extra abi.Addr) (int, error) {
	return attrs.NewKeyval(attrs.KindComm, copyFn, deleteFn, extra)
}

func CommFreeKeyval(number *int) error { return attrs.FreeKeyval(attrs.KindComm, number) }

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

// The names of MPI 1.

func KeyvalCreate(copyFn, deleteFn, extra abi.Addr) (int, error) {
	return CommCreateKeyval(copyFn, deleteFn, extra)
}

func KeyvalFree(number *int) error                        { return CommFreeKeyval(number) }
func AttrPut(c *Comm, number int, value abi.Addr) error   { return CommSetAttr(c, number, value) }
func AttrGet(c *Comm, number int) (abi.Addr, bool, error) { return CommGetAttr(c, number) }
func AttrDelete(c *Comm, number int) error                { return CommDeleteAttr(c, number) }
