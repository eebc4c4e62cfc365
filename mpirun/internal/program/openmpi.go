package program

import (
	"slices"
	"strconv"
	"strings"
)

// IsOpenMPI reports whether a library, like libmpi.so.40.30.4, belongs to Open MPI.
func IsOpenMPI(lib string) bool {
	name, version := nameAndVersion(lib)
	known := strings.HasPrefix(name, "libmpi_usempi") ||
		slices.Contains([]string{"libmpi", "libmpi_cxx", "libmpi_mpifh", "liboshmem"}, name)
	return known && version >= 0 && version != mpichVersion
}

// IsMPICH reports whether a library belongs to the MPICH family, whose ranks meet over PMI-1.
// Some of its members have other names, like libmpi_cray.so.12.
func IsMPICH(lib string) bool {
	name, version := nameAndVersion(lib)
	return strings.HasPrefix(name, "libmpi") && version == mpichVersion
}

// IsABI reports whether a library has the binary interface of the MPI standard, under the name
// common to MPICH and Open MPI.
func IsABI(lib string) bool {
	name, version := nameAndVersion(lib)
	return name == "libmpi_abi" && version >= 0
}

// Versions of the libraries: of MPICH and compatible libraries, and of Open MPI 3 to 5.
const (
	mpichVersion   = 12
	openMPIVersion = 40
)

// nameAndVersion returns libmpi and 40 for libmpi.so.40.30.4. The version is -1 if there is none.
func nameAndVersion(lib string) (string, int) {
	name, numbers, _ := strings.Cut(lib, ".so.")
	first, _, _ := strings.Cut(numbers, ".")
	version, err := strconv.Atoi(first)
	if err != nil {
		return name, -1
	}
	return name, version
}
