package mpirun

import (
	"errors"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/job"
	"gompi/mpirun/internal/stdio"
)

// heritage returns standard input, for inheritance by a rank on this machine, or nil. Ranks are
// in other sessions than gompirun. A terminal would therefore let ranks of a background gompirun
// read text typed for the shell.
func heritage() *os.File {
	if _, err := unix.IoctlGetInt(0, unix.TIOCGPGRP); err == nil {
		return nil
	}
	return os.Stdin
}

// An inputSource is standard input, which the runs of a job read in turn.
type inputSource struct {
	file  stdio.File
	start int64         // position at gompirun's start; -1 if not seekable
	stop  chan struct{} // closed to end the reading; nil before the reading
	ended chan struct{} // closed after the reading
}

func newInputSource(f stdio.File) *inputSource {
	s := &inputSource{file: f, start: -1}
	if at, err := f.Seek(0, io.SeekCurrent); err == nil {
		s.start = at
	}
	return s
}

// rewind ends the reading and returns to the start, or reports false if that is impossible.
func (s *inputSource) rewind() bool {
	if s.start < 0 {
		return false
	}
	if s.stop != nil { // reading a seekable file does not block
		close(s.stop)
		<-s.ended
		s.stop = nil
	}
	_, err := s.file.Seek(s.start, io.SeekStart)
	return err == nil
}

// read reads the source until its end and returns the channel of the data, whose last element may
// have an error. Its goroutine ends with the process at the latest, because a read of a terminal
// cannot be interrupted.
func (s *inputSource) read() <-chan job.Input {
	f, ch, stop, ended := s.file, make(chan job.Input), make(chan struct{}), make(chan struct{})
	s.stop, s.ended = stop, ended
	send := func(in job.Input) (sent bool) {
		select {
		case ch <- in:
			return true
		case <-stop:
			return false
		}
	}
	go func() {
		defer close(ended)
		defer close(ch)
		// Reading the terminal in the background would stop this process by SIGTTIN. In a thread that
		// blocks SIGTTIN the read fails with EIO instead. The thread must not end with this goroutine:
		// its end would continue stopped agents, its children (see agent.Run).
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer blockSignal(syscall.SIGTTIN)()
		for {
			buf := make([]byte, ctl.MaxChunk/2)
			n, err := f.Read(buf)
			if n > 0 && !send(job.Input{Data: buf[:n]}) {
				return
			}
			switch {
			case err == nil:
			case errors.Is(err, syscall.EIO) && inBackground(f):
				time.Sleep(foregroundLook)
			case err == io.EOF, errors.Is(err, syscall.EIO) && isTerminal(f): // the terminal has hung up
				return
			default:
				send(job.Input{Err: err})
				return
			}
		}
	}()
	return ch
}

// foregroundLook is the period with which a background job checks whether the terminal is its own
// again: no signal announces that.
const foregroundLook = 200 * time.Millisecond

// inBackground reports whether f is a terminal that belongs to another job of the shell.
func inBackground(f stdio.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && group != unix.Getpgrp()
}

func isTerminal(f stdio.File) bool {
	_, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil || errors.Is(err, syscall.EIO)
}
