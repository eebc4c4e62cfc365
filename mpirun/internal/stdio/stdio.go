// Package stdio reads and writes descriptors that other processes have, too. Any of them may make
// the open file description non-blocking at any time, as asyncio, Node.js and ssh do with
// standard input. An os.File that was blocking when the process began then fails with EAGAIN; a
// File waits.
package stdio

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// A File is an os.File that may become non-blocking.
type File struct{ *os.File }

// The standard descriptors.
var (
	Stdin  = File{os.Stdin}
	Stdout = File{os.Stdout}
	Stderr = File{os.Stderr}
)

// Read reads like os.File. It blocks until there is data.
func (f File) Read(b []byte) (int, error) {
	for {
		n, err := f.File.Read(b)
		if n > 0 || !errors.Is(err, unix.EAGAIN) {
			return n, err
		}
		f.await(unix.POLLIN)
	}
}

// Write writes like os.File. It blocks until all of b is written.
func (f File) Write(b []byte) (n int, err error) {
	for {
		more, err := f.File.Write(b[n:])
		if n += more; !errors.Is(err, unix.EAGAIN) {
			return n, err
		}
		f.await(unix.POLLOUT)
	}
}

// WriteString is Write.
func (f File) WriteString(s string) (int, error) { return f.Write([]byte(s)) }

// await returns when f is ready. The following read or write reports errors.
func (f File) await(events int16) {
	unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: events}}, -1)
}
