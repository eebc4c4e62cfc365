package program

import (
	"debug/elf"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// CheckRanksMeet returns an error if p is a program of Open MPI, of which size
// processes could not meet: each would do all the work, as rank 0 of 1. It reads
// the program's head once; what a script or a library starts it cannot see.
func (p *Program) CheckRanksMeet(size int) error {
	if size < 2 || !isFile(p.file()) {
		return nil
	}
	f, err := elf.Open(p.file())
	if err != nil {
		return nil // a script; or the kernel will report what is wrong with it
	}
	defer f.Close()
	libs, err := f.ImportedLibraries()
	if err != nil {
		return nil
	}
	for _, lib := range libs {
		if IsOpenMPI(lib) {
			return fmt.Errorf("%q is linked with Open MPI (%s), whose ranks meet over PMIx, which gompirun does not speak: each of %d would be rank 0 of 1; start it with Open MPI's mpirun, as in: mpirun -np %d %s",
				p.Argv[0], lib, size, size, strings.Join(p.Argv, " "))
		}
	}
	return nil
}

// IsOpenMPI reports whether a library, like libmpi.so.40.30.4, is Open MPI's.
func IsOpenMPI(lib string) bool {
	name, version := nameAndVersion(lib)
	known := strings.HasPrefix(name, "libmpi_usempi") || slices.Contains([]string{"libmpi", "libmpi_cxx", "libmpi_mpifh", "liboshmem"}, name)
	return known && version >= 0 && version != mpichVersion
}

// IsMPICH reports whether a library is of the MPICH family, whose ranks meet over PMI-1. Some of
// it have names of their own, like libmpi_cray.so.12.
func IsMPICH(lib string) bool {
	name, version := nameAndVersion(lib)
	return strings.HasPrefix(name, "libmpi") && version == mpichVersion
}

// IsABI reports whether a library has the binary interface of the MPI standard. MPICH's and Open
// MPI's have the same name.
func IsABI(lib string) bool {
	name, version := nameAndVersion(lib)
	return name == "libmpi_abi" && version >= 0
}

// mpichVersion is that of MPICH's libraries and of others with its binary interface.
const mpichVersion = 12

// nameAndVersion returns libmpi and 40 for libmpi.so.40.30.4. Without a version that is -1.
func nameAndVersion(lib string) (string, int) {
	name, numbers, _ := strings.Cut(lib, ".so.")
	first, _, _ := strings.Cut(numbers, ".")
	version, err := strconv.Atoi(first)
	if err != nil {
		return name, -1
	}
	return name, version
}
