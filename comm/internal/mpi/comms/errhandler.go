package comms

import (
	"fmt"
	"os"

	"gompi/comm/internal/mpi/abi"
	"gompi/comm/internal/mpi/errs"
)

func CommSetErrhandler(c *Comm, h *errs.Errhandler) error {
	if err := Check(c); err != nil {
		return err
	}
	if h == nil {
		return errs.New(errs.Arg, "the error handler is not valid")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handler = h
	return nil
}

// CommGetErrhandler gives the program the handle once more: each is freed for itself.
func CommGetErrhandler(c *Comm) (*errs.Errhandler, error) {
	if err := Check(c); err != nil {
		return nil, err
	}
	h := c.errhandler()
	h.Hold()
	return h, nil
}

func CommCallErrhandler(c *Comm, code int) error {
	if err := Check(c); err != nil {
		return err
	}
	switch h := c.errhandler(); {
	case h.Call(c.Handle, abi.Class(code)):
	case !h.Returns():
		c.die("MPI_Comm_call_errhandler", abi.Class(code), errs.New(abi.Class(code), "called by the program"))
	}
	return nil
}

// The names of MPI 1.

func ErrhandlerSet(c *Comm, h *errs.Errhandler) error { return CommSetErrhandler(c, h) }
func ErrhandlerGet(c *Comm) (*errs.Errhandler, error) { return CommGetErrhandler(c) }

// Raise calls the error handler of c, or of MPI_COMM_WORLD if c is nil, and returns the class.
func (c *Comm) Raise(name string, err error) abi.Class {
	if c == nil {
		c = World
	}
	class := errs.ClassOf(err)
	errs.Note(name, err)
	switch h := c.errhandler(); {
	case h.Call(c.Handle, class):
	case !h.Returns():
		c.die(name, class, err)
	}
	return class
}

// die ends the job, as MPI_ERRORS_ARE_FATAL says.
func (c *Comm) die(name string, class abi.Class, err error) {
	text := fmt.Sprintf("%s on %s: %s: %v", name, c.Name(), errs.ClassName(class), errs.Explain(err))
	fmt.Fprintln(os.Stderr, "gompi:", text)
	abi.C.Flush()
	if World.P2P != nil {
		_ = World.P2P.Abort(int(class), text)
	}
	abi.C.Exit(int(class))
}
