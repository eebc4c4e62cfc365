package mpi

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"gompi/comm"
	"gompi/comm/internal/mpi/datatype"
	"gompi/comm/internal/mpi/table"
)

// A Class is an error class (MPI_ERR_BUFFER), or a code that a program has added.
type Class int

const (
	errBuffer      Class = 1
	errCount       Class = 2
	errType        Class = 3
	errTag         Class = 4
	errComm        Class = 5
	errRank        Class = 6
	errRequest     Class = 7
	errRoot        Class = 8
	errGroup       Class = 9
	errOp          Class = 10
	errTopology    Class = 11
	errDims        Class = 12
	errArg         Class = 13
	errUnknown     Class = 14
	errTruncate    Class = 15
	errOther       Class = 16
	errIntern      Class = 17
	errPending     Class = 18
	errInStatus    Class = 19
	errInfoKey     Class = 31
	errInfoNoKey   Class = 32
	errInfoValue   Class = 33
	errInfo        Class = 34
	errKeyval      Class = 36
	errNoMem       Class = 39
	errUnsupported Class = 57

	firstCode Class = 0x4000 // of classes and codes that programs add
)

// An Error is how a call fails: its class, and what is wrong with which argument.
type Error struct {
	Class Class
	Text  string
	Cause error // in comm, nil if the argument was refused here
}

func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Cause.Error()
	}
	return e.Text
}

func (e *Error) Unwrap() error { return e.Cause }

// wrong returns an Error.
func wrong(c Class, format string, args ...any) error {
	return &Error{Class: c, Text: fmt.Sprintf(format, args...)}
}

// classOf returns the class of an error: MPI_SUCCESS, 0, of nil.
func classOf(err error) Class {
	var e *Error
	var d *datatype.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.Class
	case errors.As(err, &d):
		return Class(d.Class)
	case errors.Is(err, comm.ErrTruncated):
		return errTruncate
	case errors.Is(err, comm.ErrMemory):
		return errNoMem
	case errors.Is(err, comm.ErrClosed):
		return errComm
	case errors.Is(err, comm.ErrArgument):
		return errArg
	}
	return errOther
}

// An Errhandler is what is done about errors of a communicator.
type Errhandler struct {
	handle Handle
	fn     Addr         // of the program, 0 for the predefined ones
	held   atomic.Int32 // how often the program has the handle
}

// returns reports whether nothing is done but that the function returns the error.
func (h *Errhandler) returns() bool {
	return h.handle == table.ErrorsReturn || h.handle == table.ErrorsThrow
}

func errhandlerOf(h Handle) *Errhandler { return &Errhandler{handle: h} }

var (
	errorsAreFatal = errhandlerOf(table.ErrorsAreFatal)
	errorsAbort    = errhandlerOf(table.ErrorsAbort)
	errorsReturn   = errhandlerOf(table.ErrorsReturn)
	errorsThrow    = errhandlerOf(table.ErrorsThrow)
)

// A function is one of MPI.
type function struct {
	name string
	call func(*Args) error
	comm int // the argument whose error handler is called, -1 for that of MPI_COMM_WORLD
}

// Call calls the function with a number, and returns the class of its error, 0 if it succeeds.
func Call(number int, a *Args) Class {
	f := &functions[number]
	err := f.call(a)
	if err == nil {
		return 0
	}
	c := world
	if f.comm >= 0 {
		c = a.comm(f.comm)
	}
	return c.raise(f.name, err)
}

// Null is the error of a function that is to store a result where a pointer leads nowhere.
func Null(number int, c Handle, argument string) Class {
	return communicators.find(c).raise(functions[number].name, wrong(errArg, "%s is NULL", argument))
}

// raise calls the error handler of c, or of MPI_COMM_WORLD if c is nil, and returns the class.
func (c *Comm) raise(name string, err error) Class {
	if c == nil {
		c = world
	}
	class := classOf(err)
	lastError.note(name, err)
	switch h := c.errhandler(); {
	case h.fn != 0:
		face.CallErrhandler(h.fn, h.handle, c.handle, class)
	case !h.returns():
		c.die(name, class, err)
	}
	return class
}

// die ends the job, as MPI_ERRORS_ARE_FATAL says.
func (c *Comm) die(name string, class Class, err error) {
	text := fmt.Sprintf("%s on %s: %s: %v", name, c.Name(), className(class), explain(err))
	fmt.Fprintln(os.Stderr, "gompi:", text)
	face.Flush()
	if world.p2p != nil {
		_ = world.p2p.Abort(int(class), text)
	}
	face.Exit(int(class))
}

// A noted error is the last one that had a class, for MPI_Error_string.
type notedErrors struct {
	mu   sync.Mutex
	text map[Class]string
}

var lastError notedErrors

func (n *notedErrors) note(name string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.text == nil {
		n.text = map[Class]string{}
	}
	n.text[classOf(err)] = name + ": " + explain(err)
}
