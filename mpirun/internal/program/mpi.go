package program

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const mpiCore = "libgompi-mpi.so" // one folder above the other libraries

// The kinds of MPI libraries: a program of each loads its library.
const (
	openMPI = iota
	mpich
	abi
)

// kinds has for each kind the folder of gompi's library, the library, and the MPI whose programs it
// serves. make libmpi builds them (mpi/libmpi).
var kinds = [...]struct{ folder, lib, serves string }{
	openMPI: {"openmpi", "libmpi.so.40", "Open MPI"},
	mpich:   {"mpich", "libmpi.so.12", "MPICH"},
	abi:     {"abi", "libmpi_abi.so.1", "MPI 5"}, // the standard's binary interface
}

// mpiFolders are this host's folders of gompi's own MPI libraries, by kind; "" where there is none.
type mpiFolders [len(kinds)]string

// MPIFolder returns the folder of this host with gompi's MPI libraries in openmpi, mpich and abi,
// "" if there is none. The folders searched are beside this program, where make puts the
// libraries, in the place of make install, and in others.
func MPIFolder(others ...string) string {
	own, err := os.Executable()
	if err != nil {
		return ""
	}
	bin := filepath.Dir(own)
	for _, dir := range append([]string{filepath.Join(bin, "lib"), filepath.Join(bin, "../lib/gompi")}, others...) {
		if dir != "" && findMPI(dir) != (mpiFolders{}) {
			return dir
		}
	}
	return ""
}

// MPINames names the MPI implementations whose programs a folder serves: "Open MPI, MPICH, MPI
// 5".
func MPINames(dir string) string {
	var names []string
	for kind, folder := range findMPI(dir) {
		if folder != "" {
			names = append(names, kinds[kind].serves)
		}
	}
	return strings.Join(names, ", ")
}

func findMPI(dir string) (found mpiFolders) {
	for i, kind := range kinds {
		if sub := filepath.Join(dir, kind.folder); isFile(filepath.Join(sub, kind.lib)) {
			found[i] = sub
		}
	}
	return found
}

// librariesIn returns gompi's MPI libraries that match a pattern, without the symbolic links for
// compilers.
func librariesIn(pattern string) []string {
	libs, _ := filepath.Glob(pattern)
	return slices.DeleteFunc(libs, func(lib string) bool {
		st, err := os.Lstat(lib)
		return err != nil || !st.Mode().IsRegular()
	})
}

// isFile reports whether name is a regular file. Opening other files may block.
func isFile(name string) bool {
	st, err := os.Stat(name)
	return err == nil && st.Mode().IsRegular()
}

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
