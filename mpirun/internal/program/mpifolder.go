package program

import (
	"os"
	"path/filepath"
	"slices"
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
