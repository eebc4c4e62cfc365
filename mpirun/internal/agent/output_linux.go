package agent

import (
	"bytes"
	"time"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/ctl"
)

// Output goes to the launcher in whole lines. A line whose end does not come is
// sent as it is when nothing more comes for a while, so that a prompt is seen,
// or when it is very long.
const (
	linePatience = 100 * time.Millisecond
	longLine     = ctl.MaxOutput - ctl.MaxChunk
	tailSize     = 4 << 10
	tailLines    = 10
	saidSize     = 1 << 10
	saidLines    = 3
)

// A stream is a rank's standard output or error.
type stream struct {
	rank    int
	kind    ctl.Stream
	fd      int       // -1 when closed
	partial []byte    // a line without its end
	due     time.Time // when partial is to be sent; zero if it is empty
	halted  bool      // not watched, for want of credit
}

// read passes on what is in a rank's pipe, as far as the launcher takes it.
func (a *agent) read(s *stream) {
	for s.fd >= 0 {
		if a.window <= 0 {
			a.halt(s)
			return
		}
		n, err := unix.Read(s.fd, a.buf[:])
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return
		case err != nil || n == 0:
			a.closeStream(s)
			return
		}
		a.remember(s, a.buf[:n])
		a.sendLines(s, a.buf[:n])
		if n < len(a.buf) {
			return // the pipe is empty; if not, the loop says so again
		}
	}
}

// sendLines sends the lines that data ends, and keeps the beginning of the next.
func (a *agent) sendLines(s *stream, data []byte) {
	end := bytes.LastIndexByte(data, '\n') + 1
	if len(s.partial)+len(data)-end >= longLine {
		end = len(data)
	}
	if end > 0 {
		a.output(s, append(s.partial, data[:end]...))
		s.partial, s.due = s.partial[:0], time.Time{}
	}
	if end == len(data) {
		return
	}
	s.partial = append(s.partial, data[end:]...)
	s.due = time.Now().Add(linePatience)
	a.dueAt(s.due)
}

func (a *agent) output(s *stream, data []byte) {
	a.window -= ctl.Cost(len(data))
	a.report(&ctl.Output{Rank: s.rank, Stream: s.kind, Data: data})
}

// flushPartial sends a line without its end.
func (a *agent) flushPartial(s *stream) {
	if len(s.partial) > 0 {
		a.output(s, s.partial)
	}
	s.partial, s.due = s.partial[:0], time.Time{}
}

// closeStream ends a stream whose writers are gone.
func (a *agent) closeStream(s *stream) {
	a.flushPartial(s)
	unix.Close(s.fd)
	s.fd, s.partial = -1, nil
}

// remember keeps the end of a rank's stderr, even if merged into stdout, for the report of its
// failure, and the end of all its output for the answer to Ask.
func (a *agent) remember(s *stream, data []byte) {
	p := a.ranks[a.local[s.rank]]
	p.said = keepEnd(p.said, data, saidSize)
	if s.kind == ctl.Stderr || a.launch.Merge {
		p.tail = keepEnd(p.tail, data, tailSize)
	}
}

// keepEnd appends data to tail, of which it keeps the last bytes.
func keepEnd(tail, data []byte, size int) []byte {
	data = data[max(0, len(data)-size):]
	if extra := len(tail) + len(data) - size; extra > 0 {
		tail = tail[:copy(tail, tail[extra:])]
	}
	return append(tail, data...)
}

// lastLines returns the last n lines of tail.
func lastLines(tail []byte, n int) []byte {
	at := len(bytes.TrimRight(tail, "\n"))
	for range n {
		if at = bytes.LastIndexByte(tail[:max(0, at)], '\n'); at < 0 {
			return tail
		}
	}
	return tail[at+1:]
}

// halt stops reading a stream until there is credit: the rank's pipe fills and
// the rank waits, while orders and news go on.
func (a *agent) halt(s *stream) {
	if !s.halted {
		s.halted = true
		a.forget(s.fd)
		a.halted = append(a.halted, s)
	}
}

// credit goes on with the streams that were halted.
func (a *agent) credit(n int) {
	a.window += n
	resumed := a.halted
	a.halted = nil
	for _, s := range resumed {
		s.halted = false
		src := stdout
		if s.kind == ctl.Stderr {
			src = stderr
		}
		if s.fd >= 0 && a.watch(s.fd, src, a.local[s.rank], unix.EPOLLIN) != nil {
			a.closeStream(s)
		}
	}
}
