package mpi

import (
	"sync"

	"gompi/comm/internal/mpi/datatype"
)

func checkType(t *Datatype) error {
	if t == nil {
		return wrong(errType, "the datatype is not valid")
	}
	return nil
}

// derived gives a new type a handle. It is not committed.
func derived(t *datatype.Type, err error) (*Datatype, error) {
	if err != nil {
		return nil, err
	}
	d := &Datatype{Type: t}
	d.handle = datatypes.add(d)
	return d, nil
}

// parameterized are the types of MPI_Type_create_f90_real and the like, which are predefined, too,
// and have handles when a program has asked for them.
var parameterized = struct {
	mu  sync.Mutex
	all map[*datatype.Type]*Datatype
}{all: map[*datatype.Type]*Datatype{}}

// predefinedOf returns the handle of a predefined type.
func predefinedOf(t *datatype.Type, err error) (*Datatype, error) {
	if err != nil {
		return nil, err
	}
	if b := t.Basic(); datatype.ByID(b.ID) == t {
		return datatypes.find(Handle(b.ID)), nil
	}
	parameterized.mu.Lock()
	defer parameterized.mu.Unlock()
	d := parameterized.all[t]
	if d == nil {
		d, _ = derived(t, nil)
		d.committed = true
		parameterized.all[t] = d
	}
	return d, nil
}

// of checks the type that another is made of, and a count.
func of(t *Datatype, n int) (*datatype.Type, error) {
	if n < 0 {
		return nil, wrong(errCount, "the count is %d: want 0 or more", n)
	}
	if err := checkType(t); err != nil {
		return nil, err
	}
	return t.Type, nil
}

func TypeContiguous(n int, old *Datatype) (*Datatype, error) {
	t, err := of(old, n)
	if err != nil {
		return nil, err
	}
	return derived(datatype.Contiguous(n, t))
}

func TypeVector(n, blocklength, stride int, old *Datatype) (*Datatype, error) {
	t, err := of(old, n)
	if err != nil {
		return nil, err
	}
	return derived(datatype.Vector(n, blocklength, stride, t))
}

func TypeCreateHvector(n, blocklength, stride int, old *Datatype) (*Datatype, error) {
	t, err := of(old, n)
	if err != nil {
		return nil, err
	}
	return derived(datatype.Hvector(n, blocklength, stride, t))
}

func TypeHvector(n, blocklength, stride int, old *Datatype) (*Datatype, error) {
	return TypeCreateHvector(n, blocklength, stride, old)
}

func TypeIndexed(n int, blocklengths, displs Array, old *Datatype) (*Datatype, error) {
	t, err := of(old, n)
	if err != nil {
		return nil, err
	}
	return derived(datatype.Indexed(blocklengths.list(n), displs.list(n), t))
}

func TypeCreateHindexed(n int, blocklengths, displs Array, old *Datatype) (*Datatype, error) {
	t, err := of(old, n)
	if err != nil {
		return nil, err
	}
	return derived(datatype.Hindexed(blocklengths.list(n), displs.addressList(n), t))
}

func TypeHindexed(n int, blocklengths, displs Array, old *Datatype) (*Datatype, error) {
	return TypeCreateHindexed(n, blocklengths, displs, old)
}

func TypeCreateIndexedBlock(n, blocklength int, displs Array, old *Datatype) (*Datatype, error) {
	t, err := of(old, n)
	if err != nil {
		return nil, err
	}
	return derived(datatype.IndexedBlock(blocklength, displs.list(n), t))
}

func TypeCreateHindexedBlock(n, blocklength int, displs Array, old *Datatype) (*Datatype, error) {
	t, err := of(old, n)
	if err != nil {
		return nil, err
	}
	return derived(datatype.HindexedBlock(blocklength, displs.addressList(n), t))
}

func TypeCreateStruct(n int, blocklengths, displs Array, types []Handle) (*Datatype, error) {
	if n < 0 {
		return nil, wrong(errCount, "the count is %d: want 0 or more", n)
	}
	all := make([]*datatype.Type, n)
	for i := range all {
		t := datatypes.find(types[i])
		if t == nil {
			return nil, wrong(errType, "datatype %d of %d is not valid", i, n)
		}
		all[i] = t.Type
	}
	return derived(datatype.Struct(blocklengths.list(n), displs.addressList(n), all))
}

func TypeStruct(n int, blocklengths, displs Array, types []Handle) (*Datatype, error) {
	return TypeCreateStruct(n, blocklengths, displs, types)
}

func TypeCreateSubarray(ndims int, sizes, subsizes, starts Array, order int, old *Datatype) (*Datatype, error) {
	if ndims < 1 {
		return nil, wrong(errArg, "ndims is %d: want 1 or more", ndims)
	}
	t, err := of(old, ndims)
	if err != nil {
		return nil, err
	}
	return derived(datatype.Subarray(sizes.list(ndims), subsizes.list(ndims), starts.list(ndims), order, t))
}

func TypeCreateDarray(size, rank, ndims int, gsizes, distribs, dargs, psizes Array, order int, old *Datatype) (*Datatype, error) {
	if ndims < 1 {
		return nil, wrong(errArg, "ndims is %d: want 1 or more", ndims)
	}
	t, err := of(old, ndims)
	if err != nil {
		return nil, err
	}
	how := distribs.list(ndims)
	for i, d := range how {
		switch d {
		case face.DistributeBlock:
			how[i] = datatype.DistributeBlock
		case face.DistributeCyclic:
			how[i] = datatype.DistributeCyclic
		case face.DistributeNone:
			how[i] = datatype.DistributeNone
		default:
			return nil, wrong(errArg, "distribution %d of dimension %d is none", d, i)
		}
	}
	args := dargs.list(ndims)
	for i, a := range args {
		if a == face.DefaultArgument {
			args[i] = datatype.DistributeDefault
		}
	}
	return derived(datatype.Darray(size, rank, gsizes.list(ndims), how, args, psizes.list(ndims), order, t))
}

func TypeCreateResized(old *Datatype, lb, extent int) (*Datatype, error) {
	t, err := of(old, 0)
	if err != nil {
		return nil, err
	}
	return derived(datatype.Resized(t, lb, extent))
}

// TypeDup copies attributes, too, as their functions say.
func TypeDup(old *Datatype) (*Datatype, error) {
	t, err := of(old, 0)
	if err != nil {
		return nil, err
	}
	d, err := derived(datatype.Dup(t))
	if err != nil {
		return nil, err
	}
	d.committed = old.committed
	if err := old.copyAttributes(&old.mu, kindDatatype, old.handle, &d.attributes); err != nil {
		datatypes.remove(d.handle)
		return nil, err
	}
	return d, nil
}

func TypeCreateF90Integer(r int) (*Datatype, error) { return predefinedOf(datatype.F90Integer(r)) }
func TypeCreateF90Real(p, r int) (*Datatype, error) { return predefinedOf(datatype.F90Real(p, r)) }

func TypeCreateF90Complex(p, r int) (*Datatype, error) {
	return predefinedOf(datatype.F90Complex(p, r))
}

func TypeMatchSize(class, size int) (*Datatype, error) {
	return predefinedOf(datatype.MatchSize(class, size))
}

func TypeCommit(h *Handle) error {
	t := datatypes.find(*h)
	if err := checkType(t); err != nil {
		return err
	}
	t.committed = true
	return nil
}

// TypeFree takes the handle back. Messages under way, and types made of it, keep what they need.
func TypeFree(h *Handle) error {
	t := datatypes.find(*h)
	if err := checkType(t); err != nil {
		return err
	}
	if t.Basic() != nil {
		return wrong(errType, "%s is not freed", t.name)
	}
	if err := t.deleteAttributes(&t.mu, kindDatatype, t.handle); err != nil {
		return err
	}
	datatypes.remove(*h)
	*h = datatypes.null
	return nil
}
