package files

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/errs"
)

// classes are the classes of the system's errors. All others are MPI_ERR_IO.
var classes = map[unix.Errno]abi.Class{
	unix.ENOENT:       errs.NoSuchFile,
	unix.EEXIST:       errs.FileExists,
	unix.EACCES:       errs.Access,
	unix.EPERM:        errs.Access,
	unix.EROFS:        errs.ReadOnly,
	unix.ENOSPC:       errs.NoSpace,
	unix.EDQUOT:       errs.Quota,
	unix.EISDIR:       errs.BadFile,
	unix.ENOTDIR:      errs.BadFile,
	unix.ENAMETOOLONG: errs.BadFile,
	unix.ELOOP:        errs.BadFile,
	unix.ETXTBSY:      errs.FileInUse,
	unix.EBUSY:        errs.FileInUse,
	unix.EFAULT:       errs.Buffer,
	unix.ENOMEM:       errs.NoMem,
}

// failed returns the error of doing something with a file.
func failed(what, name string, err error) error {
	var number unix.Errno
	if err == nil {
		return nil
	}
	class := errs.IO
	if errors.As(err, &number) && classes[number] != 0 {
		class = classes[number]
	}
	return errs.New(class, "%s", fmt.Sprintf("cannot %s %s: %v", what, name, err))
}

// again calls f until no signal interrupts the call.
func again[T any](f func() (T, error)) (T, error) {
	for {
		x, err := f()
		if err != unix.EINTR {
			return x, err
		}
	}
}

func againOnly(f func() error) error {
	_, err := again(func() (struct{}, error) { return struct{}{}, f() })
	return err
}
