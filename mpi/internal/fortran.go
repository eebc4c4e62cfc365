package mpi

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/infos"
	"gompi/mpi/internal/typemap"
)

// The properties of Fortran's types are constant: the types of gfortran, and of other compilers
// without options that change them. A program that tries to set them (MPI 5.0) gets the answer that
// they are set.

// optional are the types that a Fortran compiler need not have.
var optional = regexp.MustCompile(`^MPI_(LOGICAL|INTEGER|REAL|COMPLEX)\d+$|^MPI_DOUBLE_COMPLEX$`)

// AbiGetFortranInfo returns the sizes of the usual types, and which optional types exist.
func AbiGetFortranInfo() (*infos.Info, error) {
	var pairs []string
	for _, name := range []string{"MPI_LOGICAL", "MPI_INTEGER", "MPI_REAL", "MPI_DOUBLE_PRECISION"} {
		pairs = append(pairs, strings.ToLower(name)+"_size", fmt.Sprint(typemap.Named(name).Basic().Size))
	}
	var names []string
	for name := range typemap.Names() {
		if optional.MatchString(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		pairs = append(pairs, strings.ToLower(name)+"_supported", "true")
	}
	return infos.New(pairs...), nil
}

func AbiSetFortranInfo(*infos.Info) error {
	return errs.New(errs.ABI, "the sizes of Fortran's types are set")
}

// AbiGetFortranBooleans stores .TRUE. and .FALSE. of a LOGICAL of a size, and reports whether
// there is such a LOGICAL.
func AbiGetFortranBooleans(size int, isTrue, isFalse abi.Addr) (bool, error) {
	if !slices.Contains([]int{1, 2, 4, 8, 16}, size) {
		return false, nil
	}
	clear(isTrue.Bytes(size))
	clear(isFalse.Bytes(size))
	isTrue.Bytes(1)[0] = 1 // all processors that gompi knows have the lowest byte first
	return true, nil
}

func AbiSetFortranBooleans(size int, isTrue, isFalse abi.Addr) error {
	return errs.New(errs.ABI, "the values of LOGICAL are set")
}
