package mpirun

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
)

// inputAhead is how much input an agent may hold that its ranks have not read.
const inputAhead = 128 << 10

// An input hands standard input on to the ranks that are to have it, no faster
// than they read it.
type input struct {
	ch      chan []byte // closed at the end of input
	targets []*link
	owed    map[*link]int // bytes sent and not consumed
	ended   bool
}

// newInput returns the input of the rank that stdin names, or of all or none,
// among those of links. Nothing is read yet.
func newInput(stdin cmdline.Stdin, links []*link) *input {
	in := &input{owed: map[*link]int{}}
	for _, l := range links {
		for _, r := range l.ranks {
			if stdin.Takes(r) {
				in.targets = append(in.targets, l)
				break
			}
		}
	}
	in.ended = len(in.targets) == 0
	return in
}

// wireStdin says to agents what stdin says.
func wireStdin(stdin cmdline.Stdin) int {
	switch {
	case stdin.All:
		return ctl.StdinAll
	case stdin.Rank < 0:
		return ctl.StdinNone
	}
	return stdin.Rank
}

// start reads f until its end and returns where the data comes, nil if nobody
// is to have it. The goroutine that reads ends with the process at the latest:
// a read of a terminal cannot be interrupted.
func (in *input) start(f *os.File) chan []byte {
	if in.ended {
		return nil
	}
	ch := make(chan []byte)
	go func() {
		defer close(ch)
		// Reading a terminal that belongs to another job of the shell would
		// stop this process. To a thread that blocks the signal it is an error.
		runtime.LockOSThread()
		blockSignal(syscall.SIGTTIN)
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

// foregroundLook is how often a job in the background looks whether it has the
// terminal again, which nothing tells.
const foregroundLook = 200 * time.Millisecond

// inBackground reports whether f is a terminal that belongs to another job of
// the shell.
func inBackground(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && group != unix.Getpgrp()
}

// chunks returns the channel of input, nil while agents hold enough of it.
func (in *input) chunks() <-chan []byte {
	if in.ended {
		return nil
	}
	for _, n := range in.owed {
		if n >= inputAhead {
			return nil
		}
	}
	return in.ch
}

// pass sends data on; none is the end of input.
func (in *input) pass(data []byte) {
	in.ended = len(data) == 0
	for _, l := range in.targets {
		in.owed[l] += len(data)
		l.Send(&ctl.Input{Data: data})
	}
}

// consumed notes that l's ranks have read n bytes.
func (in *input) consumed(l *link, n int) { in.owed[l] -= n }
