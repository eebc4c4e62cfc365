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
	if size < 2 {
		return nil
	}
	f, err := elf.Open(p.file())
	if err != nil {
		return nil // a script; or the kernel will say what is wrong with it
	}
	defer f.Close()
	libs, err := f.ImportedLibraries()
	if err != nil {
		return nil
	}
	for _, lib := range libs {
		if isOpenMPI(lib) {
			return fmt.Errorf("%q is linked with Open MPI (%s), whose ranks meet over PMIx, which gompirun does not speak: each of %d would be rank 0 of 1; start it with Open MPI's mpirun, as in: mpirun -np %d %s",
				p.Argv[0], lib, size, size, strings.Join(p.Argv, " "))
		}
	}
	return nil
}

// isOpenMPI reports whether a library is Open MPI's. Those of the MPICH family,
// whose ranks meet over PMI-1, have version 12 of the same name.
func isOpenMPI(lib string) bool {
	name, number, _ := strings.Cut(lib, ".so.")
	known := strings.HasPrefix(name, "libmpi_usempi") || slices.Contains([]string{"libmpi", "libmpi_cxx", "libmpi_mpifh", "liboshmem"}, name)
	version, err := strconv.Atoi(number)
	return known && err == nil && version != 12
}
