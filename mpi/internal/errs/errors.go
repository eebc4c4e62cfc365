package errs

import (
	"errors"
	"fmt"
	"sync"

	"gompi/internal/core"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/typemap"
)

const firstCode abi.Class = 0x4000 // of classes and codes that programs add

// An Error is the failure of a call: its class, and a text that names the wrong argument.
type Error struct {
	Class abi.Class
	Text  string
	Cause error // in core, nil if the argument was refused here
}

func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Cause.Error()
	}
	return e.Text
}

func (e *Error) Unwrap() error { return e.Cause }

// New returns an Error.
func New(c abi.Class, format string, args ...any) error {
	return &Error{Class: c, Text: fmt.Sprintf(format, args...)}
}

// ClassOf returns the class of an error: MPI_SUCCESS, 0, of nil.
func ClassOf(err error) abi.Class {
	var e *Error
	var d *typemap.Error
	var r *core.RevokedError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.Class
	case errors.As(err, &d):
		return abi.Class(d.Class)
	case errors.As(err, &r) && r.Died:
		return ProcFailed
	case r != nil && r.Rank >= 0: // else the job ends
		return Revoked
	case errors.Is(err, core.ErrTruncated):
		return Truncate
	case errors.Is(err, core.ErrMemory):
		return NoMem
	case errors.Is(err, core.ErrClosed):
		return Comm
	case errors.Is(err, core.ErrArgument):
		return Arg
	}
	return Other
}

// notedErrors are the last errors of each class, for MPI_Error_string.
type notedErrors struct {
	mu   sync.Mutex
	text map[abi.Class]string
}

var lastError notedErrors

// Note notes the error of a function on an object.
func Note(name, on string, err error) {
	n := &lastError
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.text == nil {
		n.text = map[abi.Class]string{}
	}
	n.text[ClassOf(err)] = Where(name, on) + ": " + Explain(err)
}

// Where returns a function with its object, if any.
func Where(name, on string) string {
	if on == "" {
		return name
	}
	return name + " on " + on
}
