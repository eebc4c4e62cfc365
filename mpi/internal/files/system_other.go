//go:build !linux

package files

import "golang.org/x/sys/unix"

// setLock waits for a lock that is the process's: MPI programs run on Linux alone.
const setLock = unix.F_SETLKW

// allocate reports that the system keeps no room.
func allocate(int, int64) error { return unix.EOPNOTSUPP }
