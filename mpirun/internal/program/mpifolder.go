package program

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	openMPILib = "libmpi.so.40"
	mpichLib   = "libmpi.so.12"
	abiLib     = "libmpi_abi.so.1"
	mpiCore    = "libgompi-mpi.so" // one folder above the other libraries
)

// mpiFolders are this host's folders of gompi's own MPI libraries, built by make libmpi
// (mpi/libmpi): under the names that programs of Open MPI load, under MPICH's, and under those of
// the standard's binary interface.
type mpiFolders struct{ openMPI, mpich, abi string }

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
	found := findMPI(dir)
	if found.openMPI != "" {
		names = append(names, "Open MPI")
	}
	if found.mpich != "" {
		names = append(names, "MPICH")
	}
	if found.abi != "" {
		names = append(names, "MPI 5")
	}
	return strings.Join(names, ", ")
}

func findMPI(dir string) (found mpiFolders) {
	if sub := filepath.Join(dir, "openmpi"); isFile(filepath.Join(sub, openMPILib)) {
		found.openMPI = sub
	}
	if sub := filepath.Join(dir, "mpich"); isFile(filepath.Join(sub, mpichLib)) {
		found.mpich = sub
	}
	if sub := filepath.Join(dir, "abi"); isFile(filepath.Join(sub, abiLib)) {
		found.abi = sub
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
