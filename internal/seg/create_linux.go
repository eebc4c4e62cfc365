package seg

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"gompi/internal/world"
)

// New makes the segment of a host that runs the given ranks, in ascending order, with an empty
// area. The descriptor closes on exec; the ranks' parent passes it to them. If the system grants
// memory for the ranks' states alone, there are no area and arenas, and Without says why.
func New(ranks []world.Rank) (*Segment, error) {
	if len(ranks) < 1 || len(ranks) > MaxRanks {
		return nil, fmt.Errorf("host segment for %d ranks, want 1 to %d", len(ranks), MaxRanks)
	}
	fd, unshared, err := memoryFile()
	if err != nil {
		return nil, fmt.Errorf("host segment: %w", err)
	}
	_, _, end := sizes(len(ranks))
	s, err := create(fd, end, unshared, ranks)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("host segment of %d bytes: %w", end, fileSizeError(err))
	}
	return s, nil
}

// memoryName begins the names of segments in /proc/PID/fd.
const memoryName = "gompi-segment"

// memoryFile makes a file in memory that has no name. In a sandbox without memfd_create, the file
// is an unlinked one in /dev/shm or on a disk. On a disk, unshared is the reason why the file may
// hold the states of the ranks, but no data that changes all the time.
func memoryFile() (fd int, unshared, err error) {
	if fd, err = unix.MemfdCreate(memoryName, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING); err == nil {
		return fd, nil, nil
	}
	err = fmt.Errorf("memfd_create: %w", err)
	for _, dir := range []string{"/dev/shm", os.TempDir()} {
		f, failed := os.CreateTemp(dir, memoryName+"-")
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		os.Remove(f.Name())
		fd, failed = unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		f.Close()
		if failed == nil && dir != "/dev/shm" {
			unshared = err
		}
		return fd, unshared, failed
	}
	return -1, nil, err
}

// create makes the segment whose area begins at end. unshared, if not nil, is the reason for making
// no area.
func create(fd, end int, unshared error, ranks []world.Rank) (*Segment, error) {
	defer raiseFileSize()()
	if err := unix.Fallocate(fd, 0, 0, int64(end)); err != nil {
		unshared = errors.Join(unshared, fmt.Errorf("fallocate: %w", err))
		if err := writeZeros(fd, end); err != nil {
			return nil, fmt.Errorf("allocate: %w", err)
		}
	}
	size := end + AreaSize(len(ranks))
	if unshared == nil {
		unshared = fileSizeError(unix.Ftruncate(fd, int64(size)+arenaSpace))
	}
	if unshared != nil {
		size = end
	}
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK) // files in /dev/shm refuse seals
	mem, err := mapAll(fd, size, end)
	if err != nil {
		return nil, fmt.Errorf("map: %w", err)
	}
	format(mem, ranks)
	s, err := view(fd, mem)
	if err == nil {
		s.without = unshared
	}
	return s, err
}

func writeZeros(fd, size int) error {
	for at, zeros := 0, make([]byte, size); at < size; {
		n, err := unix.Pwrite(fd, zeros[at:], int64(at))
		if err != nil && err != unix.EINTR {
			return err
		}
		at += max(n, 0)
	}
	return nil
}

// raiseFileSize raises this process's limit of file sizes as far as allowed, and returns a function
// that restores the limit. Most of a segment's size is never used.
func raiseFileSize() (restore func()) {
	var old unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_FSIZE, &old) != nil || old.Cur == unix.RLIM_INFINITY {
		return func() {}
	}
	if unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}) != nil {
		_ = unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: old.Max, Max: old.Max})
	}
	return func() { _ = unix.Setrlimit(unix.RLIMIT_FSIZE, &old) }
}

// fileSizeError names the file size limit, if the limit caused err.
func fileSizeError(err error) error {
	var limit unix.Rlimit
	if !errors.Is(err, unix.EFBIG) || unix.Getrlimit(unix.RLIMIT_FSIZE, &limit) != nil {
		return err
	}
	return fmt.Errorf("%w: files of this process may have %s (ulimit -f %d): want ulimit -f unlimited",
		err, Amount(int64(limit.Max)), limit.Max/1024)
}
