// Package capture takes the output of a host's ranks from their pipes: in whole lines, and only as
// much as the launcher has room for.
//
// A line whose end does not come is sent as it is some time after its first byte has, so that a
// prompt or a progress bar is seen, or when it is very long. That time counts only while the rank
// can write the end of its line, and it can be read: not while the launcher takes no output, not
// while ranks or agent are stopped, and not while the rank is ready to run and gets no processor.
package capture

import (
	"bytes"
	"fmt"
	"iter"
	"time"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/loop"
	"gompi/mpirun/internal/proc"
)

// LineTimeout is how long the end of a line is waited for.
const LineTimeout = 100 * time.Millisecond

const (
	// stoppedTime is how late the agent is if it must have been stopped.
	stoppedTime = 10 * LineTimeout
	longLine    = ctl.MaxOutput - ctl.MaxChunk
)

// Outputs are those of all ranks of a host.
type Outputs struct {
	Loop   *loop.Loop
	Report func(ctl.Message)
	Ready  func(pids ...int) (bool, time.Duration) // proc.Ready, but in tests
	Merge  bool                                    // stderr goes where stdout goes
	Window int                                     // bytes that the launcher still takes
	Due    time.Time                               // when the first partial line is to be sent; zero if there is none

	ranks    []*Output
	halted   []*stream
	haltedAt time.Time // when the first of them was
	buf      [ctl.MaxChunk]byte
}

// An Output is that of one rank.
type Output struct {
	rank           int
	process        func() int // which is the rank now; 0 before and after
	stdout, stderr stream
	tail           []byte // the end of stderr, or of both where they are merged
	last           []byte // the end of both
}

// A stream is a rank's standard output or error.
type stream struct {
	of      *Output
	kind    ctl.Stream
	fd      int       // -1 when closed
	partial []byte    // a line without its end
	due     time.Time // when partial is to be sent; zero if it is empty, or cannot be continued now
	turn    proc.Turn // of the rank, to write the end of partial; not begun before that was due
	halted  bool      // not watched, for want of room at the launcher
}

// Add adds the output of a rank. process returns its process, 0 while there is none.
func (all *Outputs) Add(rank int, process func() int) *Output {
	o := &Output{rank: rank, process: process}
	o.stdout = stream{of: o, kind: ctl.Stdout, fd: -1}
	o.stderr = stream{of: o, kind: ctl.Stderr, fd: -1}
	all.ranks = append(all.ranks, o)
	return o
}

// Pipes makes the pipes of a rank and watches them. It returns the ends that its process inherits,
// -1 for what has not been made because of the error.
func (all *Outputs) Pipes(o *Output) (stdout, stderr int, err error) {
	if stdout, err = all.pipe(&o.stdout); err != nil {
		return stdout, -1, err
	}
	if !all.Merge {
		stderr, err = all.pipe(&o.stderr)
		return stdout, stderr, err
	}
	if stderr, err = unix.FcntlInt(uintptr(stdout), unix.F_DUPFD_CLOEXEC, 0); err != nil { // one pipe keeps the order of what is written
		return stdout, -1, fmt.Errorf("stderr: %w", err)
	}
	return stdout, stderr, nil
}

func (all *Outputs) pipe(s *stream) (int, error) {
	pipe, err := loop.Pipe(0)
	if err != nil {
		return -1, err
	}
	s.fd = pipe[0]
	return pipe[1], all.watch(s)
}

func (all *Outputs) watch(s *stream) error {
	return all.Loop.Watch(s.fd, unix.EPOLLIN, func(uint32) { all.read(s) })
}

// read passes on what is in a rank's pipe, as far as the launcher takes it.
func (all *Outputs) read(s *stream) {
	for full := true; full; {
		if all.Window <= 0 {
			all.halt(s)
			return
		}
		full = all.readOnce(s) // if not, the pipe is empty; or the loop reports it again
	}
}

// readOnce passes on a piece of what is in a rank's pipe, and reports whether it was a full one.
func (all *Outputs) readOnce(s *stream) bool {
	n, err := unix.Read(s.fd, all.buf[:])
	switch {
	case err == unix.EINTR:
		return true
	case err == unix.EAGAIN:
		return false
	case err != nil || n == 0:
		all.close(s)
		return false
	}
	all.remember(s, all.buf[:n])
	all.sendLines(s, all.buf[:n])
	return n == len(all.buf)
}

// readRest passes on what is in a rank's pipe now, with or without room at the launcher: for the
// report of its failure, or before the pipe is closed. It is no more than a pipe holds.
func (all *Outputs) readRest(s *stream) {
	if s.fd < 0 {
		return
	}
	n, err := unix.IoctlGetInt(s.fd, unix.TIOCINQ)
	for ; err == nil && n > 0 && s.fd >= 0; n -= len(all.buf) {
		all.readOnce(s)
	}
}

// Drain reads what is in the pipes of a rank that has ended, as far as the launcher takes it; of
// one that has failed also what the report of that shows.
func (all *Outputs) Drain(o *Output, failed bool) {
	for _, s := range []*stream{&o.stdout, &o.stderr} {
		if all.drain(s); failed && all.inTail(s) {
			all.readRest(s)
		}
	}
}

func (all *Outputs) drain(s *stream) {
	for s.fd >= 0 && !s.halted && s.pending() {
		all.read(s)
	}
}

// pending reports whether something can be read from s, if only its end.
func (s *stream) pending() bool {
	fds := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == unix.EINTR || n > 0
}

// streams returns those of all ranks.
func (all *Outputs) streams() iter.Seq[*stream] {
	return func(yield func(*stream) bool) {
		for _, o := range all.ranks {
			if !yield(&o.stdout) || !yield(&o.stderr) {
				return
			}
		}
	}
}

// Open reports whether there are processes that have the output of a rank open, or what they have
// written waits for room at the launcher.
func (all *Outputs) Open() bool {
	for s := range all.streams() {
		if s.fd >= 0 {
			return true
		}
	}
	return all.Halted()
}

// Pending reports whether a process has written what is not read, or waits for room in its pipe.
func (all *Outputs) Pending() bool {
	for s := range all.streams() {
		if s.fd >= 0 && s.pending() {
			return true
		}
	}
	return false
}

// Close passes on what is left in the pipes, and closes them. Processes that live on may still
// write to them.
func (all *Outputs) Close() {
	for s := range all.streams() {
		if all.readRest(s); s.fd >= 0 {
			all.close(s)
		}
	}
}

// close ends a stream, whose writers are gone or are not waited for.
func (all *Outputs) close(s *stream) {
	all.flush(s)
	unix.Close(s.fd)
	s.fd, s.partial = -1, nil
}

// halt stops reading a stream until the launcher has room: the rank's pipe fills and the rank
// waits, while orders and news continue.
func (all *Outputs) halt(s *stream) {
	if s.halted {
		return
	}
	s.halted, s.due = true, time.Time{}
	all.Loop.Forget(s.fd)
	if len(all.halted) == 0 {
		all.haltedAt = time.Now()
	}
	all.halted = append(all.halted, s)
}

// Halted reports whether output waits for room at the launcher.
func (all *Outputs) Halted() bool { return len(all.halted) > 0 }

// Credit continues with what was halted: the launcher has room for n more bytes. It reports whether
// output has waited for that for long.
func (all *Outputs) Credit(n int) (long bool) {
	all.Window += n
	resumed := all.halted
	all.halted = nil
	for _, s := range resumed {
		s.halted = false
		all.awaitLineEnd(s)
		if s.fd >= 0 && all.watch(s) != nil {
			all.close(s)
		}
	}
	return len(resumed) > 0 && time.Since(all.haltedAt) > LineTimeout
}

const (
	tailSize  = 4 << 10
	tailLines = 10
	lastSize  = 1 << 10
	lastCount = 3
)

// remember keeps the ends of a rank's output.
func (all *Outputs) remember(s *stream, data []byte) {
	s.of.last = keepEnd(s.of.last, data, lastSize)
	if all.inTail(s) {
		s.of.tail = keepEnd(s.of.tail, data, tailSize)
	}
}

// inTail reports whether the report of a rank's failure shows the end of s.
func (all *Outputs) inTail(s *stream) bool { return s.kind == ctl.Stderr || all.Merge }

// Tail returns the end of a rank's stderr, even if merged into stdout, for the report of its
// failure.
func (o *Output) Tail() []byte { return Tail(o.tail) }

// Tail returns as much of the end of text as the report of a failure shows.
func Tail(text []byte) []byte { return lastLines(text, tailLines) }

// Last returns the last lines of all output of a rank.
func (o *Output) Last() string {
	return string(bytes.TrimRight(lastLines(o.last, lastCount), "\n"))
}

// keepEnd appends data to tail, of which it keeps the last bytes.
func keepEnd(tail, data []byte, size int) []byte {
	data = data[max(0, len(data)-size):]
	if extra := len(tail) + len(data) - size; extra > 0 {
		tail = tail[:copy(tail, tail[extra:])]
	}
	return append(tail, data...)
}

// lastLines returns the last n lines of text.
func lastLines(text []byte, n int) []byte {
	at := len(bytes.TrimRight(text, "\n"))
	for range n {
		if at = bytes.LastIndexByte(text[:max(0, at)], '\n'); at < 0 {
			return text
		}
	}
	return text[at+1:]
}
