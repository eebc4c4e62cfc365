package files

import (
	"golang.org/x/sys/unix"

	"gompi/mpi/internal/errs"
)

// A mode is how a file is opened: the sum of some of these.
type mode int

const (
	appending     mode = 1 // MPI_MODE_APPEND
	create        mode = 2
	deleteOnClose mode = 4
	exclusive     mode = 8
	readOnly      mode = 16
	readWrite     mode = 32
	sequential    mode = 64
	uniqueOpen    mode = 128
	writeOnly     mode = 256
	allModes           = 2*writeOnly - 1
)

func (m mode) has(x mode) bool { return m&x != 0 }

// check returns an error if m is not valid.
func (m mode) check() error {
	ways := 0
	for _, x := range []mode{readOnly, readWrite, writeOnly} {
		if m.has(x) {
			ways++
		}
	}
	switch {
	case m&^allModes != 0:
		return errs.New(errs.Amode, "the mode is not a sum of MPI_MODE_RDONLY and the like")
	case ways != 1:
		return errs.New(errs.Amode, "the mode has %d of MPI_MODE_RDONLY, MPI_MODE_RDWR and MPI_MODE_WRONLY: want one", ways)
	case m.has(readOnly) && m.has(create|exclusive):
		return errs.New(errs.Amode, "MPI_MODE_RDONLY is with MPI_MODE_CREATE or MPI_MODE_EXCL")
	case m.has(readWrite) && m.has(sequential):
		return errs.New(errs.Amode, "MPI_MODE_RDWR is with MPI_MODE_SEQUENTIAL")
	}
	return nil
}

// flags returns the flags of open for m, for a file that exists.
func (m mode) flags() int {
	switch {
	case m.has(readOnly):
		return unix.O_RDONLY | unix.O_CLOEXEC
	case m.has(writeOnly):
		return unix.O_WRONLY | unix.O_CLOEXEC
	}
	return unix.O_RDWR | unix.O_CLOEXEC
}

// creation returns the further flags of open for the rank that may create the file.
func (m mode) creation() int {
	flags := 0
	if m.has(create) {
		flags |= unix.O_CREAT
	}
	if m.has(exclusive) {
		flags |= unix.O_EXCL
	}
	return flags
}
