package mpirun

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/table"
)

// keepDescriptors hides this process's inherited descriptors, except the standard ones, from its
// children. A shell's lock, the end of a pipe or a listening socket would stay open in ranks and
// logins after gompirun has ended.
func keepDescriptors() {
	const first = 3
	if unix.CloseRange(first, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	names, _ := os.ReadDir("/proc/self/fd") // a sandbox may not know the call
	for _, name := range names {
		if fd, err := strconv.Atoi(name.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
}

// screenSize returns the size of a terminal; ok is false if f is none, and columns are a table's.
func screenSize(f *os.File) (lines, columns int, ok bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, table.Width, false
	}
	if size.Row == 0 || size.Col == 0 { // the terminal does not know
		return 24, 80, true
	}
	return int(size.Row), int(size.Col), true
}
