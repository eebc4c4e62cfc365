package mpi

import (
	"gompi/comm/internal/mpi/abi"
	"gompi/comm/internal/mpi/attrs"
	"gompi/comm/internal/mpi/comms"
	"gompi/comm/internal/mpi/dtypes"
	"gompi/comm/internal/mpi/errs"
	"gompi/comm/internal/mpi/ops"
	"gompi/comm/internal/mpi/p2p"
)

// Languages other than C: a face says which one an object's functions are in, and sets and gets
// attributes for Fortran.

const (
	kindOp         = 3
	kindRequest    = 5
	kindErrhandler = 6
	kindKeyval     = 12
)

// SetLanguage says which language the functions of an object are in. A keyval's get and return
// Fortran's integers from then on.
func SetLanguage(kind int, object abi.Handle, language int) {
	switch kind {
	case kindOp:
		if o := ops.Registry.Find(object); o != nil {
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
	c, a, err := attributesOf(kind, object)
	if err == nil {
		err = a.Put(kind, object, number, abi.Addr(value), true)
	}
	return raised(c, "MPI_Comm_set_attr", "MPI_Type_set_attr", kind, err)
}

// Integer returns an attribute as Fortran gets it, and whether there is one.
func Integer(kind int, object abi.Handle, number int) (int64, bool, abi.Class) {
	c, a, err := attributesOf(kind, object)
	if at, ok := attrs.OfEnvironment(number); ok && c != nil && kind == attrs.KindComm {
		if at == 0 {
			return 0, false, 0
		}
		return int64(*(*int32)(at.Pointer())), true, 0
	}
	var x abi.Addr
	found := false
	if err == nil {
		x, found, err = a.GetInteger(kind, number)
	}
	return int64(x), found, raised(c, "MPI_Comm_get_attr", "MPI_Type_get_attr", kind, err)
}

// attributesOf returns the attributes of a communicator, which is also returned, or a datatype.
func attributesOf(kind int, object abi.Handle) (*comms.Comm, *attrs.Attributes, error) {
	if kind == attrs.KindComm {
		c := comms.Registry.Find(object)
		if err := comms.Check(c); err != nil {
			return nil, nil, err
		}
		return c, &c.Attributes, nil
	}
	t := dtypes.Registry.Find(object)
	if err := dtypes.CheckType(t); err != nil {
		return nil, nil, err
	}
	return nil, &t.Attributes, nil
}

// raised returns the class of err, and calls the error handler if there is one.
func raised(c *comms.Comm, ofComm, ofType string, kind int, err error) abi.Class {
	switch {
	case err == nil:
		return 0
	case kind == attrs.KindComm:
		return c.Raise(ofComm, err)
	}
	return c.Raise(ofType, err)
}
