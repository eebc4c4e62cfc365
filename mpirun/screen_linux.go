package mpirun

import (
	"os"

	"golang.org/x/sys/unix"
)

// screenSize returns the size of a terminal; ok is false if f is none.
func screenSize(f *os.File) (lines, columns int, ok bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	if size.Row == 0 || size.Col == 0 { // the terminal does not know
		return 24, 80, true
	}
	return int(size.Row), int(size.Col), true
}
