// Package attrs has the attributes that communicators and datatypes carry: keyvals, with their
// functions to copy and to delete, and the attributes of the environment.
package attrs

import (
	"slices"
	"sync"

	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/errs"
)

// The kinds of objects that have attributes, as a Face has them.
const (
	KindComm     = 1
	KindDatatype = 2
	KindWin      = 10
)

// Attributes are the attributes of an object, in the order in which they were set.
type Attributes struct {
	mu   sync.Mutex
	list []attribute
}

// An attribute set by Fortran is an integer: C gets its address. An attribute set by C is an
// address, which Fortran gets as an integer (MPI 4.0, section 19.3.7).
type attribute struct {
	key     *keyval
	value   abi.Addr
	integer abi.Addr // the value's address if Fortran has set it, else 0
}

// set stores a value of C's or, if fortran, of Fortran's.
func (x *attribute) set(value abi.Addr, fortran bool) {
	x.value = value
	if !fortran {
		x.free()
		return
	}
	if x.integer == 0 {
		x.integer = abi.C.Alloc(8)
	}
	*(*int64)(x.integer.Pointer()) = int64(value)
}

func (x *attribute) free() {
	if x.integer != 0 {
		abi.C.Free(x.integer)
		x.integer = 0
	}
}

// inC returns the value that C gets.
func (x *attribute) inC() abi.Addr {
	if x.integer != 0 {
		return x.integer
	}
	return x.value
}

// forKey returns the value that the functions of its keyval get.
func (x *attribute) forKey() abi.Addr {
	if x.key.foreign {
		return x.value
	}
	return x.inC()
}

// A keyval is a key of attributes. Freed keyvals live until their last attribute is deleted.
type keyval struct {
	number    int
	kind      int
	copy, del abi.Addr // functions of the program, 0 if they do nothing
	extra     abi.Addr
	foreign   bool // they are not C's
}

// keyvals are the keyvals that programs have created and not freed.
var keyvals = struct {
	mu   sync.Mutex
	all  map[int]*keyval
	next int
}{all: map[int]*keyval{}, next: firstKeyval}

const (
	keyvalInvalid = 0
	firstKeyval   = 0x1000
)

func NewKeyval(kind int, copyFn, deleteFn, extra abi.Addr) (int, error) {
	keyvals.mu.Lock()
	defer keyvals.mu.Unlock()
	k := &keyval{number: keyvals.next, kind: kind, copy: copyFn, del: deleteFn, extra: extra}
	keyvals.next++
	keyvals.all[k.number] = k
	return k.number, nil
}

func findKeyval(kind, number int) (*keyval, error) {
	keyvals.mu.Lock()
	defer keyvals.mu.Unlock()
	if k := keyvals.all[number]; k != nil && k.kind == kind {
		return k, nil
	}
	return nil, errs.New(errs.Keyval, "the keyval is not valid")
}

// FreeKeyval may be called again with a copy of the number, for instance by the keyval's own
// function.
func FreeKeyval(kind int, number *int) error {
	keyvals.mu.Lock()
	defer keyvals.mu.Unlock()
	k := keyvals.all[*number]
	if *number < firstKeyval || *number >= keyvals.next || k != nil && k.kind != kind {
		return errs.New(errs.Keyval, "the keyval is not valid")
	}
	delete(keyvals.all, *number)
	*number = keyvalInvalid
	return nil
}

// SetLanguage sets the language, other than C, of a keyval's functions.
func SetLanguage(number, language int) {
	keyvals.mu.Lock()
	defer keyvals.mu.Unlock()
	if k := keyvals.all[number]; k != nil {
		k.copy, k.del = k.copy.In(language), k.del.In(language)
		k.foreign = true
	}
}

// find returns the index of the attribute with a key, -1 if there is none.
func (a *Attributes) find(number int) int {
	return slices.IndexFunc(a.list, func(x attribute) bool { return x.key.number == number })
}

// Put sets an attribute. The program's functions are called without the lock.
func (a *Attributes) Put(kind int, object abi.Handle, number int, value abi.Addr, fortran bool) error {
	k, err := findKeyval(kind, number)
	if err != nil {
		return err
	}
	a.mu.Lock()
	i := a.find(number)
	var old abi.Addr
	if i >= 0 {
		old = a.list[i].forKey()
	}
	a.mu.Unlock()
	if i >= 0 {
		if err := k.deleted(kind, object, old); err != nil {
			return err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if i = a.find(number); i < 0 {
		i = len(a.list)
		a.list = append(a.list, attribute{key: k})
	}
	a.list[i].set(value, fortran)
	return nil
}

func (a *Attributes) Get(kind, number int) (abi.Addr, bool, error) {
	x, err := a.lookUp(kind, number)
	return x.inC(), x.key != nil, err
}

// GetInteger returns the value that Fortran gets.
func (a *Attributes) GetInteger(kind, number int) (abi.Addr, bool, error) {
	x, err := a.lookUp(kind, number)
	return x.value, x.key != nil, err
}

// lookUp returns an attribute without a key if there is none.
func (a *Attributes) lookUp(kind, number int) (attribute, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := a.find(number); i >= 0 {
		return a.list[i], nil
	}
	_, err := findKeyval(kind, number)
	return attribute{}, err
}

func (a *Attributes) Remove(kind int, object abi.Handle, number int) error {
	a.mu.Lock()
	i := a.find(number)
	if i < 0 {
		a.mu.Unlock()
		_, err := findKeyval(kind, number)
		return err
	}
	x := a.list[i]
	a.mu.Unlock()
	if err := x.key.deleted(kind, object, x.forKey()); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.drop(number)
	return nil
}

func (a *Attributes) drop(number int) {
	if i := a.find(number); i >= 0 {
		a.list[i].free()
		a.list = slices.Delete(a.list, i, i+1)
	}
}

// deleted calls the function for an attribute that is no more.
func (k *keyval) deleted(kind int, object abi.Handle, value abi.Addr) error {
	if k.del == 0 {
		return nil
	}
	if class := abi.C.DeleteAttr(k.del, kind, object, k.number, value, k.extra); class != 0 {
		return errs.New(class, "the keyval's function to delete has failed")
	}
	return nil
}

// CopyAttributes gives to the values that the copy functions of a's keyvals return.
func (a *Attributes) CopyAttributes(kind int, object abi.Handle, to *Attributes) error {
	a.mu.Lock()
	all := slices.Clone(a.list)
	a.mu.Unlock()
	for _, x := range all {
		if x.key.copy == 0 {
			continue
		}
		value, keep, class := abi.C.CopyAttr(x.key.copy, kind, object, x.key.number, x.key.extra, x.forKey())
		if class != 0 {
			return errs.New(class, "the keyval's function to copy has failed")
		}
		if keep {
			copied := attribute{key: x.key}
			copied.set(value, x.key.foreign && x.integer != 0)
			to.list = append(to.list, copied)
		}
	}
	return nil
}

// DeleteAttributes deletes all, the last first (MPI 4.0, section 7.7).
func (a *Attributes) DeleteAttributes(kind int, object abi.Handle) error {
	for {
		a.mu.Lock()
		n := len(a.list)
		if n == 0 {
			a.mu.Unlock()
			return nil
		}
		x := a.list[n-1]
		a.mu.Unlock()
		if err := x.key.deleted(kind, object, x.forKey()); err != nil {
			return err
		}
		a.mu.Lock()
		a.drop(x.key.number)
		a.mu.Unlock()
	}
}

// ---- Of the environment ----

// environment are the attributes that MPI_COMM_WORLD has from the beginning: addresses of ints in
// memory of C's, which programs may keep.
var environment struct {
	first  abi.Addr
	values [7]int32
}

const (
	keyTagUB        = 501
	keyIO           = 502
	keyHost         = 503
	keyWtimeGlobal  = 504
	keyAppnum       = 505
	keyLastUsedCode = 506
	keyUniverseSize = 507
)

// OfEnvironment returns the address of the value of a key, 0 if it has none, and whether the key
// is of the environment.
func OfEnvironment(number int) (abi.Addr, bool) {
	if number < keyTagUB || number > keyUniverseSize {
		return 0, false
	}
	i := number - keyTagUB
	v := environment.values[i]
	if number == keyLastUsedCode {
		v = int32(abi.C.LastCode + errs.Added())
	}
	at := environment.first.Plus(4 * i)
	*(*int32)(at.Pointer()) = v
	return at, true
}

// SetEnvironment gives the environment the values of a job of a size, in which this rank runs the
// numbered program. All ranks can do I/O, so MPI_IO is MPI_ANY_SOURCE.
func SetEnvironment(size, program int, oneClock bool) {
	environment.first = abi.C.Alloc(len(environment.values) * 4)
	environment.values = [...]int32{abi.TagUB, int32(abi.C.AnySource), int32(abi.C.ProcNull), 0, int32(program), 0,
		int32(size)}
	if oneClock {
		environment.values[keyWtimeGlobal-keyTagUB] = 1
	}
}
