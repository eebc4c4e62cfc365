package mpi

import (
	"errors"

	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/files"
)

// A function is a function of MPI.
type function struct {
	name string
	call func(*Args) error
	by   kind // of the argument whose error handler is called
	at   int  // which argument that is

	check func(*Args, int) error // of the object, which is argument of; nil: call checks all
	of    int
}

// A kind is a kind of object whose error handlers are called.
type kind int

const (
	byNone       kind = iota // functions without such an argument
	byComm                   // a communicator
	bySession                // a session
	byGroup                  // a group: the session of the group
	byErrhandler             // a session that is to have the error handler
	byWin                    // a window
	byFile                   // a file
	byNoFile                 // MPI_FILE_NULL, for functions without a file
)

// Call calls the function with a number, and returns the class of its error, 0 on success.
func Call(number int, a *Args) abi.Class {
	f := &functions[number]
	if f.check != nil {
		if err := f.check(a, f.of); err != nil {
			return f.raise(a, err)
		}
	}
	if err := f.call(a); err != nil {
		return f.raise(a, err)
	}
	return 0
}

// raise calls the error handler for err, and returns its class.
func (f *function) raise(a *Args, err error) abi.Class {
	var on *comms.On // of an object that is no argument, such as a request's
	if errors.As(err, &on) {
		return on.By.Raise(f.name, err)
	}
	switch f.by {
	case byComm:
		return a.comm(f.at).Raise(f.name, err)
	case bySession:
		return a.session(f.at).Raise(f.name, err)
	case byGroup:
		return a.group(f.at).Raise(f.name, err)
	case byWin:
		return a.win(f.at).Raise(f.name, err)
	case byFile:
		return a.file(f.at).Raise(f.name, err)
	case byNoFile:
		return files.Null.Raise(f.name, err)
	case byErrhandler:
		return comms.RaiseBy(a.errhandler(f.at), f.name, err)
	}
	return comms.Unattached.Raise(f.name, err)
}

// Null is the error of a function that is to store a result where a pointer leads nowhere. h is the
// object whose error handler is called.
func Null(number int, h abi.Handle, argument string) abi.Class {
	f, a := &functions[number], new(Args)
	a.setHandle(f.at, h)
	return f.raise(a, errs.New(errs.Arg, "%s is NULL", argument))
}
