package files

import (
	"math/rand/v2"

	"golang.org/x/sys/unix"

	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/infos"
)

// FileOpen is collective. A failure on any rank is a failure on all.
func FileOpen(c *comms.Comm, name abi.Text, amode int, info *infos.Info) (*File, error) {
	own, err := c.P2P.Dup(comms.In("MPI_File_open"))
	if err != nil {
		return nil, err
	}
	f := &File{c: own, name: name.String(), mode: mode(amode), view: bytesFrom(0), Holder: errs.Holder{Handler: Null.Errhandler()}}
	if err := f.open(); err != nil {
		comms.CloseWhenIdle(own)
		return nil, err
	}
	own.SetName(f.text())
	comms.Own(own)
	f.hint(info)
	f.Handle = Registry.Add(f)
	return f, nil
}

// open opens the file on all ranks or on none.
func (f *File) open() error {
	t := f.all("MPI_File_open")
	if err := t.agree(f.mode.check(), int(f.mode)); err != nil {
		return err
	}
	// The first rank creates the file: with MPI_MODE_EXCL only one can. Since the others do not
	// create a file, a file system that they do not share is noticed.
	reply := make([]int64, 2)
	if err := t.first(reply, func() error { return f.openFirst(reply) }); err != nil {
		return err
	}
	var err error
	if f.c.Rank() != 0 {
		err = f.openHere(0)
	}
	if err == nil && f.mode.has(appending) {
		f.at = int(reply[0])
		f.shared.start = f.at
	}
	f.shared.number = uint64(reply[1])
	opened := err == nil
	if err = t.agree(err); err != nil && opened {
		_ = unix.Close(f.fd)
	}
	return err
}

// openFirst replies the size of the file, and a number that no other open file has.
func (f *File) openFirst(reply []int64) error {
	if err := f.openHere(f.mode.creation()); err != nil {
		return err
	}
	size, err := f.size()
	if err != nil {
		_ = unix.Close(f.fd)
		return err
	}
	reply[0], reply[1] = int64(size), int64(rand.Uint64())
	return nil
}

func (f *File) openHere(more int) error {
	fd, err := again(func() (int, error) { return unix.Open(f.name, f.mode.flags()|more, 0o666) })
	f.fd = fd
	return failed("open", f.name, err)
}

func (f *File) size() (int, error) {
	end, err := unix.Seek(f.fd, 0, unix.SEEK_END)
	return int(end), failed("find the size of", f.name, err)
}

// FileClose is collective. Operations under way end first.
func FileClose(h *abi.Handle) error {
	f := Registry.Find(*h)
	if err := f.Check(); err != nil {
		return err
	}
	f.under.Wait()
	Registry.Remove(*h)
	*h = Registry.Null
	err := failed("close", f.name, unix.Close(f.fd))
	used := f.shared.close()
	t := f.all("MPI_File_close")
	all, err := t.gather(err, nil, []int64{used})
	for _, used := range all { // nil after a failure: then nobody knows
		if used != 0 || f.mode.has(deleteOnClose) {
			err = t.first(nil, f.remove)
			break
		}
	}
	comms.Disown(f.c)
	comms.CloseWhenIdle(f.c)
	return comms.Failed(f, err)
}

// remove removes the files that the last rank must remove.
func (f *File) remove() error {
	if err := f.shared.remove(f.name); err != nil || !f.mode.has(deleteOnClose) {
		return err
	}
	return failed("remove", f.name, unix.Unlink(f.name))
}

func FileDelete(name abi.Text, info *infos.Info) error {
	return failed("remove", name.String(), unix.Unlink(name.String()))
}

// ---- Size ----

func FileGetSize(f *File) (int, error) {
	return f.size()
}

// FileSetSize is collective, as FilePreallocate is: the first rank sets the size.
func FileSetSize(f *File, size int) error {
	return f.resize("MPI_File_set_size", size, func() error {
		return failed("set the size of", f.name, againOnly(func() error { return unix.Ftruncate(f.fd, int64(size)) }))
	})
}

// FilePreallocate makes the file at least size bytes long. If the file system cannot reserve space,
// the file is only extended.
func FilePreallocate(f *File, size int) error {
	return f.resize("MPI_File_preallocate", size, func() error {
		if size == 0 {
			return nil
		}
		err := againOnly(func() error { return allocate(f.fd, int64(size)) })
		if err == unix.EOPNOTSUPP {
			now, e := f.size()
			if e != nil || now >= size {
				return e
			}
			err = againOnly(func() error { return unix.Ftruncate(f.fd, int64(size)) })
		}
		return failed("allocate room for", f.name, err)
	})
}

func (f *File) resize(function string, size int, do func() error) error {
	var err error
	switch {
	case size < 0:
		err = errs.New(errs.Arg, "the size is %d: want 0 or more", size)
	case f.mode.has(readOnly):
		err = errs.New(errs.ReadOnly, "the file was opened with MPI_MODE_RDONLY")
	case f.mode.has(sequential):
		err = errSequential
	}
	t := f.all(function)
	if err = t.agree(err, size); err != nil {
		return err
	}
	return t.first(nil, do)
}

var errSequential = errs.New(errs.Unsupported, "the file was opened with MPI_MODE_SEQUENTIAL")

// FileSync writes this rank's data to the device.
func FileSync(f *File) error {
	f.under.Wait()
	err := againOnly(func() error { return unix.Fsync(f.fd) })
	if err == unix.EINVAL || err == unix.EROFS { // there is nothing to write
		err = nil
	}
	return f.all("MPI_File_sync").agree(failed("sync", f.name, err))
}
