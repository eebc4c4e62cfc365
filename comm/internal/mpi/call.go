package mpi

import (
	"gompi/comm/internal/mpi/abi"
	"gompi/comm/internal/mpi/comms"
	"gompi/comm/internal/mpi/errs"
)

// A function is one of MPI.
type function struct {
	name string
	call func(*Args) error
	comm int // the argument whose error handler is called, -1 for that of MPI_COMM_WORLD
}

// Call calls the function with a number, and returns the class of its error, 0 if it succeeds.
func Call(number int, a *Args) abi.Class {
	f := &functions[number]
	err := f.call(a)
	if err == nil {
		return 0
	}
	c := comms.World
	if f.comm >= 0 {
		c = a.comm(f.comm)
	}
	return c.Raise(f.name, err)
}

// Null is the error of a function that is to store a result where a pointer leads nowhere.
func Null(number int, c abi.Handle, argument string) abi.Class {
	return comms.Registry.Find(c).Raise(functions[number].name, errs.New(errs.Arg, "%s is NULL", argument))
}
