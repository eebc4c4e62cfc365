package mpirun

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/ctl"
)

// heritage returns standard input if a rank on this machine may have it itself. Ranks are in other
// sessions than gompirun. There a terminal would not care that gompirun is in the background, and
// let the ranks take what is typed for the shell.
func heritage() *os.File {
	if _, err := unix.IoctlGetInt(0, unix.TIOCGPGRP); err == nil {
		return nil
	}
	return os.Stdin
}

// readInput reads f until its end and returns the channel of the data. Its goroutine ends with the
// process at the latest: a read of a terminal cannot be interrupted.
func readInput(f *os.File) <-chan []byte {
	ch := make(chan []byte)
	go func() {
		defer close(ch)
		// Reading the terminal in the background would stop this process by SIGTTIN. In a thread
		// that blocks SIGTTIN the read fails with EIO instead. The thread must not end with this
		// goroutine: that would continue stopped agents which it has started (see agent.Run).
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer blockSignal(syscall.SIGTTIN)()
		for {
			buf := make([]byte, ctl.MaxChunk/2)
			n, err := f.Read(buf)
			if n > 0 {
				ch <- buf[:n]
			}
			switch {
			case errors.Is(err, syscall.EIO) && inBackground(f):
				time.Sleep(foregroundLook)
			case err != nil:
				return
			}
		}
	}()
	return ch
}

// foregroundLook is how often a job in the background checks whether it has the terminal again. No
// signal announces it.
const foregroundLook = 200 * time.Millisecond

// inBackground reports whether f is a terminal that belongs to another job of
// the shell.
func inBackground(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && group != unix.Getpgrp()
}
