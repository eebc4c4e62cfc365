package windows

import (
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/attrs"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/errs"
)

func WinSetAttr(w *Win, number int, value abi.Addr) error {
	return w.Put(attrs.KindWin, w.Handle, number, value, false)
}

// The predefined attributes.
const (
	winBase = 601 + iota
	winUnit
	winSize
	winFlavor
	winModel
)

// keepValues stores the values that predefined attributes point to.
func (w *Win) keepValues() {
	w.values = abi.C.Alloc(24)
	me := w.w.Comm.Rank()
	*(*int64)(w.values.Pointer()) = int64(w.w.Size(me))
	for i, x := range []int{w.w.Unit(me), abi.C.FlavorCreate + w.flavor, abi.C.Unified} {
		*(*int32)(w.values.Plus(8 + 4*i).Pointer()) = int32(x)
	}
}

// Integer returns an attribute as Fortran gets it: the value that C's points to, except for the
// memory's address.
func (w *Win) Integer(number int) (int64, bool, error) {
	at, found, err := WinGetAttr(w, number)
	switch {
	case err != nil || !found:
		return 0, false, err
	case number == winSize:
		return *(*int64)(at.Pointer()), true, nil
	case number > winBase && number <= winModel:
		return int64(*(*int32)(at.Pointer())), true, nil
	case number == winBase:
		return int64(at), true, nil
	}
	x, found, err := w.GetInteger(attrs.KindWin, number)
	return int64(x), found, err
}

func WinGetAttr(w *Win, number int) (abi.Addr, bool, error) {
	switch number {
	case winBase:
		return w.base, true, nil
	case winSize:
		return w.values, true, nil
	case winUnit:
		return w.values.Plus(8), true, nil
	case winFlavor:
		return w.values.Plus(12), true, nil
	case winModel:
		return w.values.Plus(16), true, nil
	}
	return w.Get(attrs.KindWin, number)
}

func WinDeleteAttr(w *Win, number int) error {
	return w.Remove(attrs.KindWin, w.Handle, number)
}

func WinCallErrhandler(w *Win, code int) error {
	comms.CallHandler(w.Errhandler(), errs.KindWin, w.Handle, "a window", "MPI_Win_call_errhandler",
		comms.CalledByProgram(code))
	return nil
}

// Raise calls the error handler of w, if that is not nil, and returns the class.
func (w *Win) Raise(name string, err error) abi.Class {
	if w == nil {
		return comms.Unattached.Raise(name, err)
	}
	on := "a window of " + w.of.Name()
	errs.Note(name, on, err)
	comms.CallHandler(w.Errhandler(), errs.KindWin, w.Handle, on, name, err)
	return errs.ClassOf(err)
}
