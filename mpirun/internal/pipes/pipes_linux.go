// Package pipes takes the output of a host's ranks from their pipes: in whole lines, and only
// as much as the launcher has room for.
//
// A line without its end is sent some time after its first byte, so that prompts and progress
// bars are seen, or when it is very long. That time counts only while the rank can write the rest
// and the agent can read: not while the launcher takes no output, not while ranks or agent are
// stopped, and not while the rank is ready to run but gets no processor.
package pipes

import (
	"bytes"
	"fmt"
	"iter"
	"regexp"
	"time"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/loop"
	"gompi/mpirun/internal/proc"
)

// LineTimeout bounds the wait for the end of a line.
const LineTimeout = 100 * time.Millisecond

const (
	// stoppedTime is the lateness that proves that the agent was stopped.
	stoppedTime = 10 * LineTimeout
	longLine    = ctl.MaxOutput - ctl.MaxChunk
)

// Outputs are the outputs of all ranks of a host.
type Outputs struct {
	Loop   *loop.Loop
	Report func(ctl.Message)
	Ready  func(pids ...int) (bool, time.Duration) // proc.Ready, except in tests
	Merge  bool                                    // stderr goes where stdout goes
	Window int                                     // bytes that the launcher has room for
	Due    time.Time                               // when to send the first partial line; zero: none

	ranks    []*Output
	halted   []*stream
	haltedAt time.Time // when the first of halted was
	buf      [ctl.MaxChunk]byte
}

// An Output is the output of one rank.
type Output struct {
	rank           int
	process        func() int // returns the rank's process; 0 before and after it runs
	stdout, stderr stream
	tail           []byte // the end of stderr, or of both streams if merged
	last           []byte // the end of both streams
}

// A stream is a rank's standard output or error.
type stream struct {
	of      *Output
	kind    ctl.Stream
	fd      int       // -1 when closed
	partial []byte    // a line without its end
	due     time.Time // when to send partial; zero if it is empty, or cannot be continued now
	turn    proc.Turn // of the rank, to write the end of partial; begins when that is due
	halted  bool      // not watched, because the launcher has no room
}

// Add adds the output of a rank. process returns its process, 0 while there is none.
func (all *Outputs) Add(rank int, process func() int) *Output {
	o := &Output{rank: rank, process: process}
	o.stdout = stream{of: o, kind: ctl.Stdout, fd: -1}
	o.stderr = stream{of: o, kind: ctl.Stderr, fd: -1}
	all.ranks = append(all.ranks, o)
	return o
}

// Pipes makes and watches the pipes of a rank. The results are the ends for its process to
// inherit, -1 for pipes not made because of the error.
func (all *Outputs) Pipes(o *Output) (stdout, stderr int, err error) {
	if stdout, err = all.pipe(&o.stdout); err != nil {
		return stdout, -1, err
	}
	if !all.Merge {
		stderr, err = all.pipe(&o.stderr)
		return stdout, stderr, err
	}
	// one pipe keeps the order of writes
	if stderr, err = unix.FcntlInt(uintptr(stdout), unix.F_DUPFD_CLOEXEC, 0); err != nil {
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

// read passes on the content of a rank's pipe, as far as the launcher has room.
func (all *Outputs) read(s *stream) {
	for full := true; full; {
		if all.Window <= 0 {
			all.halt(s)
			return
		}
		full = all.readOnce(s) // if not, the pipe is empty; or the loop reports it again
	}
}

// readOnce passes on a piece of a rank's output, and reports whether it filled the buffer.
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

// readRest passes on the content of a rank's pipe regardless of the launcher's room, for the
// report of its failure, or before the pipe is closed. That is bounded by the pipe's capacity.
func (all *Outputs) readRest(s *stream) {
	if s.fd < 0 {
		return
	}
	n, err := unix.IoctlGetInt(s.fd, unix.TIOCINQ)
	for ; err == nil && n > 0 && s.fd >= 0; n -= len(all.buf) {
		all.readOnce(s)
	}
}

// Drain reads the pipes of a rank that has ended, as far as the launcher has room; of a failed
// rank also the output shown in the report.
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

// pending reports whether s can be read, if only to its end.
func (s *stream) pending() bool {
	fds := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == unix.EINTR || n > 0
}

// streams returns the streams of all ranks.
func (all *Outputs) streams() iter.Seq[*stream] {
	return func(yield func(*stream) bool) {
		for _, o := range all.ranks {
			if !yield(&o.stdout) || !yield(&o.stderr) {
				return
			}
		}
	}
}

// Open reports whether processes have a rank's output open, or output waits for room at the
// launcher.
func (all *Outputs) Open() bool {
	for s := range all.streams() {
		if s.fd >= 0 {
			return true
		}
	}
	return all.Halted()
}

// Pending reports whether a process has unread output, or waits for room in its pipe.
func (all *Outputs) Pending() bool {
	for s := range all.streams() {
		if s.fd >= 0 && s.pending() {
			return true
		}
	}
	return false
}

// Close passes on the rest of the output, and closes the pipes. Surviving processes may still
// write to them.
func (all *Outputs) Close() {
	for s := range all.streams() {
		if all.readRest(s); s.fd >= 0 {
			all.close(s)
		}
	}
}

// close ends a stream whose writers are gone or no longer matter.
func (all *Outputs) close(s *stream) {
	all.flush(s)
	unix.Close(s.fd)
	s.fd, s.partial = -1, nil
}

// halt stops reading a stream until the launcher has room. The rank's pipe fills and the rank
// waits, while orders and reports continue.
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

// Credit adds room for n bytes at the launcher, and resumes halted streams. The result tells
// whether output had to wait for long.
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

var goPanic = regexp.MustCompile(`(?m)^(panic|fatal error): (?s:.*)^goroutine \d+ (?s:.*)\n(\t|exit status )[^\n]*\n*\z`)

// Tail returns the end of text, as much as the report of a failure shows: of a panic the beginning.
func Tail(text []byte) []byte {
	if at := goPanic.FindIndex(text); at != nil {
		lines := bytes.SplitAfterN(text[at[0]:], []byte("\n"), tailLines+1)
		return bytes.Join(lines[:min(len(lines), tailLines)], nil)
	}
	return lastLines(text, tailLines)
}

// Last returns the last lines of all output of a rank.
func (o *Output) Last() string {
	return string(bytes.TrimRight(lastLines(o.last, lastCount), "\n"))
}

// keepEnd appends data to tail and keeps the last size bytes.
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
