package mpi

import "sync"

// Languages other than C: a face says which one an object's functions are in, and sets and gets
// attributes for Fortran.

const (
	kindOp         = 3
	kindRequest    = 5
	kindErrhandler = 6
	kindKeyval     = 9
)

// SetLanguage stores the number of a language in the upper byte of the functions of an object,
// where the face finds it when it is to call them. A keyval's functions get and return Fortran's
// integers from then on.
func SetLanguage(kind int, object Handle, language int) {
	mark := func(functions ...*Addr) {
		for _, fn := range functions {
			if *fn != 0 {
				*fn |= Addr(language) << 56
			}
		}
	}
	switch kind {
	case kindOp:
		if o := operators.find(object); o != nil {
			mark(&o.fn)
		}
	case kindErrhandler:
		if h := errhandlers.find(object); h != nil {
			mark(&h.fn)
		}
	case kindRequest:
		if r := requests.find(object); r != nil && r.user != nil {
			mark(&r.user.queryFn, &r.user.freeFn, &r.user.cancelFn)
		}
	case kindKeyval:
		keyvals.mu.Lock()
		defer keyvals.mu.Unlock()
		if k := keyvals.all[int(object)]; k != nil {
			mark(&k.copy, &k.del)
			k.foreign = true
		}
	}
}

// SetInteger sets an attribute as Fortran does.
func SetInteger(kind int, object Handle, number int, value int64) Class {
	c, a, mu, err := attributesOf(kind, object)
	if err == nil {
		err = a.put(mu, kind, object, number, Addr(value), true)
	}
	return c.raised("MPI_Comm_set_attr", "MPI_Type_set_attr", kind, err)
}

// Integer returns an attribute as Fortran gets it, and whether there is one.
func Integer(kind int, object Handle, number int) (int64, bool, Class) {
	c, a, mu, err := attributesOf(kind, object)
	if at, ok := ofEnvironment(number); ok && c != nil && kind == kindComm {
		if at == 0 {
			return 0, false, 0
		}
		return int64(*(*int32)(at.pointer())), true, 0
	}
	var x attribute
	if err == nil {
		x, err = a.lookUp(mu, kind, number)
	}
	return int64(x.value), x.key != nil, c.raised("MPI_Comm_get_attr", "MPI_Type_get_attr", kind, err)
}

// attributesOf returns the attributes of a communicator, which is also returned, or a datatype.
func attributesOf(kind int, object Handle) (*Comm, *attributes, *sync.Mutex, error) {
	if kind == kindComm {
		c := communicators.find(object)
		if err := checkComm(c); err != nil {
			return nil, nil, nil, err
		}
		return c, &c.attributes, &c.mu, nil
	}
	t := datatypes.find(object)
	if err := checkType(t); err != nil {
		return nil, nil, nil, err
	}
	return nil, &t.attributes, &t.mu, nil
}

// raised returns the class of err, and calls the error handler if there is one.
func (c *Comm) raised(ofComm, ofType string, kind int, err error) Class {
	switch {
	case err == nil:
		return 0
	case kind == kindComm:
		return c.raise(ofComm, err)
	}
	return c.raise(ofType, err)
}
