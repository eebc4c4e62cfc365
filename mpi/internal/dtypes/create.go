package dtypes

import (
	"slices"
	"sync"

	"gompi/internal/core/lease"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/attrs"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/typemap"
)

// Check returns an error if t is not valid.
func (t *Datatype) Check() error {
	if t == nil {
		return errs.New(errs.Type, "the datatype is not valid")
	}
	return nil
}

// derived gives a new type a handle. The type is not committed.
func derived(t *typemap.Type, err error) (*Datatype, error) {
	if err != nil {
		return nil, err
	}
	d := &Datatype{Type: t}
	d.Handle = Registry.Add(d)
	return d, nil
}

// parameterized are the types of MPI_Type_create_f90_real and the like, which are predefined, too,
// and have handles when a program has asked for them.
var parameterized = struct {
	mu  sync.Mutex
	all map[*typemap.Type]*Datatype
}{all: map[*typemap.Type]*Datatype{}}

// predefinedOf returns the handle of a predefined type.
func predefinedOf(t *typemap.Type, err error) (*Datatype, error) {
	if err != nil {
		return nil, err
	}
	if b := t.Basic(); typemap.ByID(b.ID) == t {
		return Registry.Find(abi.Handle(b.ID)), nil
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

// checkLists checks a count, and the arrays that have as many elements.
func checkLists(n int, arrays ...abi.Array) error {
	switch {
	case n < 0:
		return errs.New(errs.Count, "the count is %d: want 0 or more", n)
	case n > 0 && slices.Contains(arrays, 0):
		return errs.New(errs.Arg, "an array is NULL: want one of %d elements", n)
	}
	return nil
}

// from returns a new type made of old, a count, and the arrays that have as many elements.
func from(old *Datatype, n int, arrays []abi.Array, create func(t *typemap.Type) (*typemap.Type, error)) (
	*Datatype, error) {
	if err := checkLists(n, arrays...); err != nil {
		return nil, err
	}
	if err := old.Check(); err != nil {
		return nil, err
	}
	return derived(create(old.Type))
}

func TypeContiguous(n int, old *Datatype) (*Datatype, error) {
	return from(old, n, nil, func(t *typemap.Type) (*typemap.Type, error) {
		return typemap.Contiguous(n, t)
	})
}

func TypeVector(n, blocklength, stride int, old *Datatype) (*Datatype, error) {
	return from(old, n, nil, func(t *typemap.Type) (*typemap.Type, error) {
		return typemap.Vector(n, blocklength, stride, t)
	})
}

func TypeCreateHvector(n, blocklength, stride int, old *Datatype) (*Datatype, error) {
	return from(old, n, nil, func(t *typemap.Type) (*typemap.Type, error) {
		return typemap.Hvector(n, blocklength, stride, t)
	})
}

func TypeIndexed(n int, blocklengths, displs abi.Array, old *Datatype) (*Datatype, error) {
	return from(old, n, []abi.Array{blocklengths, displs}, func(t *typemap.Type) (*typemap.Type, error) {
		return typemap.Indexed(blocklengths.List(n), displs.List(n), t)
	})
}

func TypeCreateHindexed(n int, blocklengths, displs abi.Array, old *Datatype) (*Datatype, error) {
	return from(old, n, []abi.Array{blocklengths, displs}, func(t *typemap.Type) (*typemap.Type, error) {
		return typemap.Hindexed(blocklengths.List(n), displs.AddressList(n), t)
	})
}

func TypeCreateIndexedBlock(n, blocklength int, displs abi.Array, old *Datatype) (*Datatype, error) {
	return from(old, n, []abi.Array{displs}, func(t *typemap.Type) (*typemap.Type, error) {
		return typemap.IndexedBlock(blocklength, displs.List(n), t)
	})
}

func TypeCreateHindexedBlock(n, blocklength int, displs abi.Array, old *Datatype) (*Datatype, error) {
	return from(old, n, []abi.Array{displs}, func(t *typemap.Type) (*typemap.Type, error) {
		return typemap.HindexedBlock(blocklength, displs.AddressList(n), t)
	})
}

func TypeCreateStruct(n int, blocklengths, displs abi.Array, types []abi.Handle) (*Datatype, error) {
	if err := checkLists(n, blocklengths, displs); err != nil {
		return nil, err
	}
	if len(types) < n {
		return nil, errs.New(errs.Arg, "the datatypes are NULL: want %d", n)
	}
	all := make([]*typemap.Type, n)
	for i := range all {
		t := Registry.Find(types[i])
		if t == nil {
			return nil, errs.New(errs.Type, "datatype %d of %d is not valid", i, n)
		}
		all[i] = t.Type
	}
	return derived(typemap.Struct(blocklengths.List(n), displs.AddressList(n), all))
}

func TypeCreateSubarray(ndims int, sizes, subsizes, starts abi.Array, order int, old *Datatype) (*Datatype, error) {
	if ndims < 1 {
		return nil, errs.New(errs.Arg, "ndims is %d: want 1 or more", ndims)
	}
	return from(old, ndims, []abi.Array{sizes, subsizes, starts}, func(t *typemap.Type) (*typemap.Type, error) {
		return typemap.Subarray(sizes.List(ndims), subsizes.List(ndims), starts.List(ndims), order, t)
	})
}

func TypeCreateDarray(size, rank, ndims int, gsizes, distribs, dargs, psizes abi.Array, order int,
	old *Datatype) (*Datatype, error) {
	if ndims < 1 {
		return nil, errs.New(errs.Arg, "ndims is %d: want 1 or more", ndims)
	}
	return from(old, ndims, []abi.Array{gsizes, distribs, dargs, psizes}, func(t *typemap.Type) (*typemap.Type, error) {
		how := distribs.List(ndims)
		for i, d := range how {
			switch d {
			case abi.C.DistributeBlock:
				how[i] = typemap.DistributeBlock
			case abi.C.DistributeCyclic:
				how[i] = typemap.DistributeCyclic
			case abi.C.DistributeNone:
				how[i] = typemap.DistributeNone
			default:
				return nil, errs.New(errs.Arg, "distribution %d of dimension %d is none", d, i)
			}
		}
		args := dargs.List(ndims)
		for i, a := range args {
			if a == abi.C.DefaultArgument {
				args[i] = typemap.DistributeDefault
			}
		}
		return typemap.Darray(size, rank, gsizes.List(ndims), how, args, psizes.List(ndims), order, t)
	})
}

func TypeCreateResized(old *Datatype, lb, extent int) (*Datatype, error) {
	return from(old, 0, nil, func(t *typemap.Type) (*typemap.Type, error) {
		return typemap.Resized(t, lb, extent)
	})
}

// TypeDup copies attributes, too, as their functions say.
func TypeDup(old *Datatype) (*Datatype, error) {
	d, err := from(old, 0, nil, typemap.Dup)
	if err != nil {
		return nil, err
	}
	if err := old.CopyAttributes(attrs.KindDatatype, old.Handle, &d.Attributes); err != nil {
		Registry.Remove(d.Handle)
		return nil, err
	}
	if old.committed {
		d.commit()
	}
	return d, nil
}

func TypeCreateF90Integer(r int) (*Datatype, error) { return predefinedOf(typemap.F90Integer(r)) }
func TypeCreateF90Real(p, r int) (*Datatype, error) { return predefinedOf(typemap.F90Real(p, r)) }

func TypeCreateF90Complex(p, r int) (*Datatype, error) {
	return predefinedOf(typemap.F90Complex(p, r))
}

func TypeMatchSize(class, size int) (*Datatype, error) {
	return predefinedOf(typemap.MatchSize(class, size))
}

// TypeGetValueIndex returns nil if there is no such pair.
func TypeGetValueIndex(value, index *Datatype) (*Datatype, error) {
	for _, t := range []*Datatype{value, index} {
		if err := t.Check(); err != nil {
			return nil, err
		}
	}
	pair := typemap.PairOf(value.Type, index.Type)
	if pair == nil {
		return nil, nil
	}
	return predefinedOf(pair, nil)
}

func TypeCommit(h *abi.Handle) error {
	t := Registry.Find(*h)
	if err := t.Check(); err != nil {
		return err
	}
	t.commit()
	return nil
}

// lender gives the face the datatypes whose elements it may move; nil if none.
var lender *lease.Lease

// Lend tells l of each datatype of the program whose elements are a single loop of runs, like
// vectors', from its commit until it is freed. Lend is called before there are any.
func Lend(l *lease.Lease) { lender = l }

func (t *Datatype) commit() {
	t.committed = true
	if s, ok := t.shape(); ok && t.Basic() == nil {
		lender.Derived(int(t.Handle)-abi.FirstHandle, s)
	}
}

// shape returns the face's description of an element, if it is a single loop of runs.
func (t *Datatype) shape() (s lease.Shape, ok bool) {
	l := t.Layout(1)
	o, ok := l.Loop()
	if at, dense := t.Contiguous(2); dense && at == 0 {
		o.Stride = o.Each
	}
	fits := func(n int) bool { return n == int(int32(n)) }
	return lease.Shape{Size: uint32(t.Size()), Run: uint32(o.Each), Stride: int32(o.Stride), Off: int32(o.Off)},
		ok && fits(t.Size()) && fits(o.Stride) && fits(o.Off)
}

// TypeFree takes the handle back. Messages under way, and types made from this type, keep their
// data.
func TypeFree(h *abi.Handle) error {
	t := Registry.Find(*h)
	if err := t.Check(); err != nil {
		return err
	}
	if t.Basic() != nil {
		return errs.New(errs.Type, "%s is not freed", t.name)
	}
	if err := t.DeleteAttributes(attrs.KindDatatype, t.Handle); err != nil {
		return err
	}
	lender.Derived(int(*h)-abi.FirstHandle, lease.Shape{})
	t.release()
	*h = Registry.Null
	return nil
}
