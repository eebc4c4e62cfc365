package mpi

import (
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/attrs"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/dtypes"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/p2p"
	"gompi/mpi/internal/windows"
)

// Languages other than C: a face sets the language of an object's functions, and sets and gets
// attributes for Fortran.

const (
	kindOp         = 3
	kindRequest    = 5
	kindErrhandler = 6
	kindKeyval     = 12
)

// SetLanguage sets the language of an object's functions. A keyval's functions in Fortran get and
// return Fortran's integers.
func SetLanguage(kind int, object abi.Handle, language int) {
	switch kind {
	case kindOp:
		if o := dtypes.Ops.Find(object); o != nil {
			o.SetLanguage(language)
		}
	case kindErrhandler:
		if h := errs.Handlers.Find(object); h != nil {
			h.SetLanguage(language)
		}
	case kindRequest:
		if r := p2p.Requests.Find(object); r != nil {
			r.SetLanguage(language)
		}
	case kindKeyval:
		attrs.SetLanguage(int(object), language)
	}
}

// SetInteger sets an attribute as Fortran does.
func SetInteger(kind int, object abi.Handle, number int, value int64) abi.Class {
	h, err := holderOf(kind, object)
	if err == nil {
		err = h.attributes.Put(kind, object, number, abi.Addr(value), true)
	}
	return h.raised("MPI_"+h.name+"_set_attr", err)
}

// Integer returns an attribute as Fortran gets it, and whether the attribute is set.
func Integer(kind int, object abi.Handle, number int) (int64, bool, abi.Class) {
	h, err := holderOf(kind, object)
	if at, ok := attrs.OfEnvironment(number); ok && err == nil && kind == attrs.KindComm {
		if at == 0 {
			return 0, false, 0
		}
		return int64(*(*int32)(at.Pointer())), true, 0
	}
	var x int64
	found := false
	if err == nil {
		x, found, err = h.integer(number)
	}
	return x, found, h.raised("MPI_"+h.name+"_get_attr", err)
}

// A holder is an object that has attributes.
type holder struct {
	name       string // of its kind, in the functions' names
	attributes *attrs.Attributes
	integer    func(number int) (int64, bool, error)
	raise      func(name string, err error) abi.Class
}

func holderOf(kind int, object abi.Handle) (h holder, err error) {
	switch kind {
	case attrs.KindComm:
		c := comms.Registry.Find(object)
		h = holder{name: "Comm", raise: c.Raise}
		if err = c.Check(); err == nil {
			h.attributes = &c.Attributes
		}
	case attrs.KindWin:
		w := windows.Registry.Find(object)
		h = holder{name: "Win", raise: w.Raise, integer: w.Integer}
		if err = w.Check(); err == nil {
			h.attributes = &w.Attributes
		}
		return h, err
	default:
		t := dtypes.Registry.Find(object)
		h = holder{name: "Type", raise: comms.Unattached.Raise}
		if err = t.Check(); err == nil {
			h.attributes = &t.Attributes
		}
	}
	h.integer = func(number int) (int64, bool, error) {
		x, found, err := h.attributes.GetInteger(kind, number)
		return int64(x), found, err
	}
	return h, err
}

// raised calls the error handler for err, and returns the class.
func (h holder) raised(name string, err error) abi.Class {
	if err == nil {
		return 0
	}
	return h.raise(name, err)
}
