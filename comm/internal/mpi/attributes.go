package mpi

import (
	"slices"
	"sync"
)

// The kinds of objects that have attributes, as a Face has them.
const (
	kindComm     = 1
	kindDatatype = 2
)

// attributes are those of one object, in the order in which they were set.
type attributes struct{ list []attribute }

// An attribute that Fortran sets is an integer: C gets its address. One that C sets is an address,
// which Fortran gets as an integer (MPI 4.0, section 19.3.7).
type attribute struct {
	key     *keyval
	value   Addr
	integer Addr // where the value lies if Fortran has set it, else 0
}

// set stores a value of C's or, if fortran, of Fortran's.
func (x *attribute) set(value Addr, fortran bool) {
	x.value = value
	if !fortran {
		x.free()
		return
	}
	if x.integer == 0 {
		x.integer = face.Alloc(8)
	}
	*(*int64)(x.integer.pointer()) = int64(value)
}

func (x *attribute) free() {
	if x.integer != 0 {
		face.Free(x.integer)
		x.integer = 0
	}
}

// inC returns what C gets.
func (x *attribute) inC() Addr {
	if x.integer != 0 {
		return x.integer
	}
	return x.value
}

// forKey returns what the functions of its keyval get.
func (x *attribute) forKey() Addr {
	if x.key.foreign {
		return x.value
	}
	return x.inC()
}

// A keyval is a key of attributes. It lives until the last attribute with it is deleted, whether it
// was freed or not.
type keyval struct {
	number    int
	kind      int
	copy, del Addr // functions of the program, 0 if they do nothing
	extra     Addr
	foreign   bool // they are not C's
}

// keyvals are those that programs have made and not freed.
var keyvals = struct {
	mu   sync.Mutex
	all  map[int]*keyval
	next int
}{all: map[int]*keyval{}, next: firstKeyval}

const (
	keyvalInvalid = 0
	firstKeyval   = 0x1000
)

func newKeyval(kind int, copyFn, deleteFn, extra Addr) (int, error) {
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
	return nil, wrong(errKeyval, "the keyval is not valid")
}

// freeKeyval may be called again with a copy of the number, for instance by the keyval's own
// function.
func freeKeyval(kind int, number *int) error {
	keyvals.mu.Lock()
	defer keyvals.mu.Unlock()
	k := keyvals.all[*number]
	if *number < firstKeyval || *number >= keyvals.next || k != nil && k.kind != kind {
		return wrong(errKeyval, "the keyval is not valid")
	}
	delete(keyvals.all, *number)
	*number = keyvalInvalid
	return nil
}

// find returns the index of the attribute with a key, -1 if there is none.
func (a *attributes) find(number int) int {
	return slices.IndexFunc(a.list, func(x attribute) bool { return x.key.number == number })
}

// put sets an attribute. The program's functions are called without the lock.
func (a *attributes) put(mu *sync.Mutex, kind int, object Handle, number int, value Addr, fortran bool) error {
	k, err := findKeyval(kind, number)
	if err != nil {
		return err
	}
	mu.Lock()
	i := a.find(number)
	var old Addr
	if i >= 0 {
		old = a.list[i].forKey()
	}
	mu.Unlock()
	if i >= 0 {
		if err := k.deleted(kind, object, old); err != nil {
			return err
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if i = a.find(number); i < 0 {
		i = len(a.list)
		a.list = append(a.list, attribute{key: k})
	}
	a.list[i].set(value, fortran)
	return nil
}

func (a *attributes) get(mu *sync.Mutex, kind, number int) (Addr, bool, error) {
	x, err := a.lookUp(mu, kind, number)
	return x.inC(), x.key != nil, err
}

// lookUp returns an attribute without a key if there is none.
func (a *attributes) lookUp(mu *sync.Mutex, kind, number int) (attribute, error) {
	mu.Lock()
	defer mu.Unlock()
	if i := a.find(number); i >= 0 {
		return a.list[i], nil
	}
	_, err := findKeyval(kind, number)
	return attribute{}, err
}

func (a *attributes) remove(mu *sync.Mutex, kind int, object Handle, number int) error {
	mu.Lock()
	i := a.find(number)
	if i < 0 {
		mu.Unlock()
		_, err := findKeyval(kind, number)
		return err
	}
	x := a.list[i]
	mu.Unlock()
	if err := x.key.deleted(kind, object, x.forKey()); err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	a.drop(number)
	return nil
}

func (a *attributes) drop(number int) {
	if i := a.find(number); i >= 0 {
		a.list[i].free()
		a.list = slices.Delete(a.list, i, i+1)
	}
}

// deleted calls the function for an attribute that is no more.
func (k *keyval) deleted(kind int, object Handle, value Addr) error {
	if k.del == 0 {
		return nil
	}
	if class := face.DeleteAttr(k.del, kind, object, k.number, value, k.extra); class != 0 {
		return wrong(class, "the keyval's function to delete has failed")
	}
	return nil
}

// copyAttributes gives to what the functions for copies say of a's.
func (a *attributes) copyAttributes(mu *sync.Mutex, kind int, object Handle, to *attributes) error {
	mu.Lock()
	all := slices.Clone(a.list)
	mu.Unlock()
	for _, x := range all {
		if x.key.copy == 0 {
			continue
		}
		value, keep, class := face.CopyAttr(x.key.copy, kind, object, x.key.number, x.key.extra, x.forKey())
		if class != 0 {
			return wrong(class, "the keyval's function to copy has failed")
		}
		if keep {
			copied := attribute{key: x.key}
			copied.set(value, x.key.foreign && x.integer != 0)
			to.list = append(to.list, copied)
		}
	}
	return nil
}

// deleteAttributes deletes all, the last first (MPI 4.0, section 7.7).
func (a *attributes) deleteAttributes(mu *sync.Mutex, kind int, object Handle) error {
	for {
		mu.Lock()
		n := len(a.list)
		if n == 0 {
			mu.Unlock()
			return nil
		}
		x := a.list[n-1]
		mu.Unlock()
		if err := x.key.deleted(kind, object, x.forKey()); err != nil {
			return err
		}
		mu.Lock()
		a.drop(x.key.number)
		mu.Unlock()
	}
}

// ---- Of communicators ----

func CommCreateKeyval(copyFn, deleteFn, extra Addr) (int, error) {
	return newKeyval(kindComm, copyFn, deleteFn, extra)
}

func CommFreeKeyval(number *int) error { return freeKeyval(kindComm, number) }

func CommSetAttr(c *Comm, number int, value Addr) error {
	if err := checkComm(c); err != nil {
		return err
	}
	return c.put(&c.mu, kindComm, c.handle, number, value, false)
}

func CommGetAttr(c *Comm, number int) (Addr, bool, error) {
	if err := checkComm(c); err != nil {
		return 0, false, err
	}
	if value, ok := ofEnvironment(number); ok {
		return value, value != 0, nil
	}
	return c.get(&c.mu, kindComm, number)
}

func CommDeleteAttr(c *Comm, number int) error {
	if err := checkComm(c); err != nil {
		return err
	}
	return c.remove(&c.mu, kindComm, c.handle, number)
}

// The names of MPI 1.

func KeyvalCreate(copyFn, deleteFn, extra Addr) (int, error) {
	return CommCreateKeyval(copyFn, deleteFn, extra)
}
func KeyvalFree(number *int) error                    { return CommFreeKeyval(number) }
func AttrPut(c *Comm, number int, value Addr) error   { return CommSetAttr(c, number, value) }
func AttrGet(c *Comm, number int) (Addr, bool, error) { return CommGetAttr(c, number) }
func AttrDelete(c *Comm, number int) error            { return CommDeleteAttr(c, number) }

// ---- Of datatypes ----

func TypeCreateKeyval(copyFn, deleteFn, extra Addr) (int, error) {
	return newKeyval(kindDatatype, copyFn, deleteFn, extra)
}

func TypeFreeKeyval(number *int) error { return freeKeyval(kindDatatype, number) }

func TypeSetAttr(t *Datatype, number int, value Addr) error {
	if err := checkType(t); err != nil {
		return err
	}
	return t.put(&t.mu, kindDatatype, t.handle, number, value, false)
}

func TypeGetAttr(t *Datatype, number int) (Addr, bool, error) {
	if err := checkType(t); err != nil {
		return 0, false, err
	}
	return t.get(&t.mu, kindDatatype, number)
}

func TypeDeleteAttr(t *Datatype, number int) error {
	if err := checkType(t); err != nil {
		return err
	}
	return t.remove(&t.mu, kindDatatype, t.handle, number)
}

// ---- Of the environment ----

// environment are the attributes that MPI_COMM_WORLD has from the beginning: addresses of ints in
// memory of C's, which programs may keep.
var environment struct {
	first  Addr
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

// ofEnvironment returns the address of the value of a key, 0 if it has none, and whether it is one
// of these keys.
func ofEnvironment(number int) (Addr, bool) {
	if number < keyTagUB || number > keyUniverseSize {
		return 0, false
	}
	i := number - keyTagUB
	v := environment.values[i]
	if number == keyLastUsedCode {
		v = int32(face.LastCode + codes.count())
	}
	at := environment.first.plus(4 * i)
	*(*int32)(at.pointer()) = v
	return at, true
}
