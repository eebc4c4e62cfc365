package typemap

import (
	"runtime"
	"sync"
)

// A precision is a type of Fortran's by its digits and range.
type precision struct {
	digits, exponent int // decimal
	name, complex    string
}

// reals are gfortran's kinds, in the order of selected_real_kind. The third is x87's.
var reals = []precision{
	{6, 37, "MPI_REAL4", "MPI_COMPLEX8"},
	{15, 307, "MPI_REAL8", "MPI_COMPLEX16"},
	{18, 4931, "MPI_LONG_DOUBLE", "MPI_C_LONG_DOUBLE_COMPLEX"},
	{33, 4931, "MPI_REAL16", "MPI_COMPLEX32"},
}

var integers = []precision{
	{2, 0, "MPI_INTEGER1", ""}, {4, 0, "MPI_INTEGER2", ""}, {9, 0, "MPI_INTEGER4", ""}, {18, 0, "MPI_INTEGER8", ""},
	{38, 0, "MPI_INTEGER16", ""},
}

// f90Types has the types made so far: the same arguments give the same type.
var f90Types sync.Map

type f90Key struct {
	by          Combiner
	first, last int
}

func f90(by Combiner, name string, ints ...int) *Type {
	key := f90Key{by, ints[0], ints[len(ints)-1]}
	if t, ok := f90Types.Load(key); ok {
		return t.(*Type)
	}
	t := *Named(name)
	kept, _ := f90Types.LoadOrStore(key, t.made(by, ints, nil))
	return kept.(*Type)
}

// F90Integer makes MPI_Type_create_f90_integer.
func F90Integer(r int) (*Type, error) {
	for _, k := range integers {
		if r <= k.digits {
			return f90(F90IntegerType, k.name, r), nil
		}
	}
	return nil, wrong(ErrArg, "r is %d: want 38 or less", r)
}

// F90Real makes MPI_Type_create_f90_real: either argument may be Undefined.
func F90Real(p, r int) (*Type, error) {
	k, err := realFor(p, r)
	if err != nil {
		return nil, err
	}
	return f90(F90RealType, k.name, p, r), nil
}

// F90Complex makes MPI_Type_create_f90_complex: either argument may be Undefined.
func F90Complex(p, r int) (*Type, error) {
	k, err := realFor(p, r)
	if err != nil {
		return nil, err
	}
	return f90(F90ComplexType, k.complex, p, r), nil
}

func realFor(p, r int) (precision, error) {
	if p == Undefined && r == Undefined {
		return precision{}, wrong(ErrArg, "p and r are both MPI_UNDEFINED: want one of them")
	}
	for i, k := range reals {
		if i == 2 && runtime.GOARCH != "amd64" {
			continue
		}
		if p <= k.digits && r <= k.exponent { // Undefined is less than all
			return k, nil
		}
	}
	return precision{}, wrong(ErrArg, "p is %d and r is %d: want 33 and 4931 at most", p, r)
}

// MatchSize returns the type of MPI_Type_match_size.
func MatchSize(typeclass, size int) (*Type, error) {
	var of []precision
	switch typeclass {
	case ClassInteger:
		of = integers
	case ClassReal, ClassComplex:
		of = []precision{reals[0], reals[1], reals[3]}
	default:
		return nil, wrong(ErrArg, "typeclass is %d: want MPI_TYPECLASS_REAL, _INTEGER or _COMPLEX", typeclass)
	}
	for _, k := range of {
		name := k.name
		if typeclass == ClassComplex {
			name = k.complex
		}
		if t := Named(name); t.size == size {
			return t, nil
		}
	}
	return nil, wrong(ErrArg, "size is %d: want that of a type of Fortran's", size)
}
