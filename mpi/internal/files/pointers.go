package files

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"gompi/mpi/internal/errs"
)

// A sharedPointer is the shared file pointer: a position in the view, which must be the same view
// on all ranks. The pointer is 8 bytes in a file of its own beside the file, created at first
// use, so that both are in reach of the same hosts. A rank that dies loses its lock on the
// pointer.
type sharedPointer struct {
	number uint64 // names its file
	start  int    // its value before the first use

	mu     sync.Mutex // guards the following; held by the holder of the lock, which is the descriptor's
	opened bool
	fd     int
}

func (s *sharedPointer) path(name string) string {
	dir, base := filepath.Split(name)
	return filepath.Join(dir, fmt.Sprintf(".%s.shared-pointer-%x", base, s.number))
}

// used returns 1 if this rank has used the pointer.
func (s *sharedPointer) used() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened {
		return 1
	}
	return 0
}

// update makes the pointer next(old), and returns old.
func (s *sharedPointer) update(name string, next func(old int) int) (old int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := s.path(name)
	if !s.opened {
		s.fd, err = again(func() (int, error) {
			return unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
		})
		if err != nil {
			return 0, failed("open the shared file pointer", path, err)
		}
		s.opened = true
	}
	if err := lock(s.fd, unix.F_WRLCK, 0, 0); err != nil {
		return 0, failed("lock the shared file pointer", path, err)
	}
	defer func() { _ = lock(s.fd, unix.F_UNLCK, 0, 0) }()
	return s.change(path, next)
}

// change is update for a caller with the lock.
func (s *sharedPointer) change(path string, next func(old int) int) (old int, err error) {
	var b [8]byte
	n, err := again(func() (int, error) { return unix.Pread(s.fd, b[:], 0) })
	if err != nil {
		return 0, failed("read the shared file pointer", path, err)
	}
	old = s.start
	if n == len(b) {
		old = int(binary.LittleEndian.Uint64(b[:]))
	}
	now := next(old)
	if now == old && n == len(b) {
		return old, nil
	}
	binary.LittleEndian.PutUint64(b[:], uint64(now))
	n, err = again(func() (int, error) { return unix.Pwrite(s.fd, b[:], 0) })
	if err == nil && n < len(b) {
		err = unix.ENOSPC
	}
	return old, failed("write the shared file pointer", path, err)
}

// close closes the pointer on this rank, and returns 1 if the pointer was used.
func (s *sharedPointer) close() int64 {
	used := s.used()
	if used != 0 {
		_ = unix.Close(s.fd)
	}
	return used
}

// remove removes its file.
func (s *sharedPointer) remove(name string) error {
	path := s.path(name)
	if err := unix.Unlink(path); err != nil && err != unix.ENOENT {
		return failed("remove the shared file pointer", path, err)
	}
	return nil
}

// lock locks n bytes of a file, all after off if n is 0, and waits for the holders of conflicting
// locks. The lock is the descriptor's: a process has several.
func lock(fd int, how int16, off, n int) error {
	l := unix.Flock_t{Type: how, Whence: unix.SEEK_SET, Start: int64(off), Len: int64(n)}
	return againOnly(func() error { return unix.FcntlFlock(uintptr(fd), setLock, &l) })
}

// ---- MPI's functions ----

const (
	seekCurrent = 401
	seekEnd     = 402
	seekSet     = 403
)

// seek returns the position offset etypes after whence's position. at is the file pointer.
func (f *File) seek(v *view, at, offset, whence int) (int, error) {
	switch whence {
	case seekSet:
		at = 0
	case seekCurrent:
	case seekEnd:
		size, err := f.size()
		if err != nil {
			return 0, err
		}
		at = v.end(size)
	default:
		return 0, errs.New(errs.Arg, "whence is not MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END")
	}
	to := at/v.unit + offset
	if to < 0 || to > mostOffset/v.unit {
		return 0, errs.New(errs.Arg, "offset %d leads to etype %d: want one of the file", offset, to)
	}
	return to * v.unit, nil
}

// mostOffset bounds positions, so that no sum of them overflows.
const mostOffset = 1 << 61

func FileSeek(f *File, offset, whence int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, err := f.seek(f.view, f.at, offset, whence)
	if err == nil {
		f.at = at
	}
	return err
}

// CheckPositions returns an error if f is not valid, or only has a shared pointer.
func (f *File) CheckPositions() error {
	if err := f.Check(); err != nil {
		return err
	}
	if f.mode.has(sequential) {
		return errSequential
	}
	return nil
}

func FileGetPosition(f *File) (int, error) {
	v, at := f.now()
	return at / v.unit, nil
}

func FileGetByteOffset(f *File, offset int) (int, error) {
	v, _ := f.now()
	if err := v.checkOffset(offset); err != nil {
		return 0, err
	}
	return v.offset(offset * v.unit), nil
}

func (v *view) checkOffset(offset int) error {
	if offset < 0 || offset > mostOffset/v.unit {
		return errs.New(errs.Arg, "the offset is %d: want 0 or more, within the file", offset)
	}
	return nil
}

// FileSeekShared is collective: the first rank sets the pointer.
func FileSeekShared(f *File, offset, whence int) error {
	t := f.all("MPI_File_seek_shared")
	if err := t.agree(f.CheckPositions(), offset, whence); err != nil {
		return err
	}
	return t.first(nil, func() error {
		v, _ := f.now()
		var wrong error
		_, err := f.shared.update(f.name, func(old int) int {
			to, e := f.seek(v, old, offset, whence)
			if wrong = e; e != nil {
				return old
			}
			return to
		})
		if err != nil {
			return err
		}
		return wrong
	})
}

func FileGetPositionShared(f *File) (int, error) {
	at, err := f.shared.update(f.name, func(old int) int { return old })
	v, _ := f.now()
	return at / v.unit, err
}

// ---- Atomic mode ----

// FileSetAtomicity is collective.
func FileSetAtomicity(f *File, atomic bool) error {
	same := 0
	if atomic {
		same = 1
	}
	if err := f.all("MPI_File_set_atomicity").agree(nil, same); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.atomic = atomic
	return nil
}

func FileGetAtomicity(f *File) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.atomic, nil
}
