package comms

import (
	"fmt"
	"os"

	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/errs"
)

func CommCallErrhandler(c *Comm, code int) error {
	CallHandler(c.Errhandler(), errs.KindComm, c.Handle, c.Name(), "MPI_Comm_call_errhandler", CalledByProgram(code))
	return nil
}

func CalledByProgram(code int) error { return errs.New(abi.Class(code), "called by the program") }

// Raise calls the error handler of c, if that is not nil, and returns the class.
func (c *Comm) Raise(name string, err error) abi.Class {
	if c == nil {
		return Unattached.Raise(name, err)
	}
	errs.Note(name, c.Name(), err)
	CallHandler(c.Errhandler(), errs.KindComm, c.Handle, c.Name(), name, err)
	return errs.ClassOf(err)
}

// A Raiser is an object that has an error handler.
type Raiser interface {
	Raise(name string, err error) abi.Class
}

// Unattached raises errors without an object, or of an object that is not valid: on MPI_COMM_SELF
// (MPI 5.0, section 9.3), if the program has given it an error handler, else on MPI_COMM_WORLD,
// as before MPI 4.0.
var Unattached Raiser = unattached{}

type unattached struct{}

func (unattached) Raise(name string, err error) abi.Class {
	c := World
	if self.IsSet() {
		c = self
	}
	errs.Note(name, "", err)
	CallHandler(c.Errhandler(), errs.KindComm, c.Handle, "", name, err)
	return errs.ClassOf(err)
}

// An On is the error of an operation on an object, whose error handler is called whatever the
// function that completes the operation.
type On struct {
	By Raiser
	error
}

func (e *On) Unwrap() error { return e.error }

// Failed returns err, if not nil, as the error of an operation on an object.
func Failed(on Raiser, err error) error {
	if err == nil {
		return nil
	}
	return &On{on, err}
}

// CallHandler deals with an error of an object as h wants. on is the object in messages, "" if
// there is none.
func CallHandler(h *errs.Errhandler, kind int, object abi.Handle, on, name string, err error) {
	class := errs.ClassOf(err)
	switch {
	case h.Call(kind, object, class):
	case !h.Returns():
		die(fmt.Sprintf("%s: %s: %v", errs.Where(name, on), errs.ClassName(class), errs.Explain(err)), class)
	}
}

// die ends the job, as MPI_ERRORS_ARE_FATAL says.
func die(text string, class abi.Class) {
	fmt.Fprintln(os.Stderr, "gompi:", text)
	abi.C.Flush()
	if World.P2P != nil {
		_ = World.P2P.Abort(int(class), text)
	}
	abi.C.Exit(int(class))
}
