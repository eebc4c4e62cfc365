//go:build linux && cgo

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// checkAlone returns an error if this process has a second MPI library: some calls would go to
// this library and some to the other, with handles and constants of the other.
func checkAlone() error {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil // not visible here
	}
	if libs := mpiLibraries(maps); len(libs) > 1 {
		return fmt.Errorf("this process has two MPI libraries, %s and %s: want one (docs/mpi.md says which a program finds)", libs[0], libs[1])
	}
	return nil
}

// mpiLibraries returns a file of each MPI library in maps. A library with several names has them
// in the same folder.
func mpiLibraries(maps []byte) (libs []string) {
	for line := range bytes.Lines(maps) {
		at := bytes.IndexByte(line, '/')
		if at < 0 {
			continue
		}
		lib := strings.TrimSpace(string(line[at:]))
		dir, base := filepath.Split(lib)
		stem, _, _ := strings.Cut(base, ".so")
		if stem == base || !slices.Contains([]string{"libmpi", "libmpich", "libmpi_abi"}, stem) {
			continue
		}
		if !slices.ContainsFunc(libs, func(known string) bool { return filepath.Dir(known)+"/" == dir }) {
			libs = append(libs, lib)
		}
	}
	return libs
}
