package remote

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A stderrTail keeps the end of a process's standard error.
type stderrTail struct {
	from *os.File
	done chan struct{} // closed at the end
	tail []byte        // readAll's until then
}

const (
	maxStderr = 4 << 10
	// stderrTime bounds the wait for its end after the process's end, because a child may keep the
	// pipe open.
	stderrTime = 200 * time.Millisecond
	// pipeful is the most that a pipe holds: 16 pages, of 4 KiB or 64.
	pipeful = 1 << 20
)

// readAll keeps the output until its end or await's deadline.
func (w *stderrTail) readAll() {
	defer close(w.done)
	buf := make([]byte, maxStderr)
	for {
		n, err := w.from.Read(buf)
		w.keep(buf[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			w.drain(buf)
		}
		if err != nil {
			return
		}
	}
}

func (w *stderrTail) keep(data []byte) {
	w.tail = append(w.tail, data...)
	w.tail = w.tail[max(0, len(w.tail)-maxStderr):]
}

// drain reads the content of the pipe, which a Read past its deadline does not.
func (w *stderrTail) drain(buf []byte) {
	conn, err := w.from.SyscallConn()
	if err != nil || w.from.SetReadDeadline(time.Time{}) != nil {
		return
	}
	conn.Read(func(fd uintptr) bool {
		for left := pipeful; left > 0; {
			n, err := unix.Read(int(fd), buf)
			if err == unix.EINTR {
				continue
			}
			if err != nil || n == 0 {
				break
			}
			w.keep(buf[:n])
			left -= n
		}
		return true
	})
}

// await returns the end of the output. The process has ended, so all unread output is in the
// pipe.
func (w *stderrTail) await() string {
	select {
	case <-w.done:
	case <-time.After(stderrTime):
		if w.from.SetReadDeadline(time.Now()) != nil {
			return "" // without polling nothing ends the Read
		}
	}
	<-w.done
	w.from.Close()
	return string(w.tail)
}
