package files

import "golang.org/x/sys/unix"

// setLock waits for a lock that is the descriptor's, not the process's.
const setLock = unix.F_OFD_SETLKW

// allocate keeps room for the first n bytes of a file.
func allocate(fd int, n int64) error { return unix.Fallocate(fd, 0, 0, n) }
