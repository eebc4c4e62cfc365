package agent

import (
	"bytes"
	"iter"
	"time"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/procinfo"
)

// Output goes to the launcher in whole lines. A line whose end does not come is sent as it is some
// time after its first byte has, so that a prompt or a progress bar is seen, or when it is very
// long.
//
// That time counts only while the rank can write the end of its line, and it can be read: not while
// the launcher takes no output, not while ranks or agent are stopped, and not while the rank is
// ready to run and gets no processor.
const (
	linePatience = 100 * time.Millisecond
	// lineTurn is the processor time that a rank gets for the end of a line, and turnTime how long
	// that is waited for.
	lineTurn = procinfo.ClockTick
	turnTime = time.Second
	// stoppedTime is how late the agent is if it must have been stopped.
	stoppedTime = 10 * linePatience
	longLine    = ctl.MaxOutput - ctl.MaxChunk
	tailSize    = 4 << 10
	tailLines   = 10
	saidSize    = 1 << 10
	saidLines   = 3
)

// A stream is a rank's standard output or error.
type stream struct {
	rank    int
	kind    ctl.Stream
	fd      int       // -1 when closed
	partial []byte    // a line without its end
	due     time.Time // when partial is to be sent; zero if it is empty, or cannot be continued now
	turn    turn      // of the rank, to write the end of partial; not begun before that was due
	halted  bool      // not watched, for want of credit
}

// read passes on what is in a rank's pipe, as far as the launcher takes it.
func (a *agent) read(s *stream) {
	for full := true; full; {
		if a.window <= 0 {
			a.halt(s)
			return
		}
		full = a.readOnce(s) // if not, the pipe is empty; or the loop says so again
	}
}

// readOnce passes on a piece of what is in a rank's pipe, and reports whether it was a full one.
func (a *agent) readOnce(s *stream) bool {
	n, err := unix.Read(s.fd, a.buf[:])
	switch {
	case err == unix.EINTR:
		return true
	case err == unix.EAGAIN:
		return false
	case err != nil || n == 0:
		a.closeStream(s)
		return false
	}
	a.remember(s, a.buf[:n])
	a.sendLines(s, a.buf[:n])
	return n == len(a.buf)
}

// readRest passes on what is in a rank's pipe now, with or without credit: for the report of its
// failure, or before the pipe is closed. It is no more than a pipe holds.
func (a *agent) readRest(s *stream) {
	if s.fd < 0 {
		return
	}
	n, err := unix.IoctlGetInt(s.fd, unix.TIOCINQ)
	for ; err == nil && n > 0 && s.fd >= 0; n -= len(a.buf) {
		a.readOnce(s)
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
	if s.due.IsZero() {
		a.awaitLineEnd(s)
	}
}

// awaitLineEnd makes tick send the partial line of s, if there is one, unless its end comes in
// time.
func (a *agent) awaitLineEnd(s *stream) {
	if len(s.partial) > 0 && !s.halted {
		s.due, s.turn = time.Now().Add(linePatience), turn{}
		a.dueAt(s.due)
	}
}

// drain reads all that is in a rank's pipe, as far as the launcher takes it.
func (a *agent) drain(s *stream) {
	for s.fd >= 0 && !s.halted && a.pending(s) {
		a.read(s)
	}
}

// sendPartials sends the partial lines that are due.
func (a *agent) sendPartials(now time.Time) {
	a.end.lines = time.Time{}
	for s := range a.streams() {
		if !s.due.IsZero() && !now.Before(s.due) {
			a.sendPartial(s, now)
		}
		if !s.due.IsZero() {
			a.dueAt(s.due)
		}
	}
}

// sendPartial sends a partial line that was due, unless its end has come meanwhile or may still.
func (a *agent) sendPartial(s *stream, now time.Time) {
	due := s.due
	switch a.drain(s); {
	case s.due != due: // it is another line, or halted
	case a.asleep:
		s.due = time.Time{}
	case now.Sub(due) > stoppedTime:
		a.awaitLineEnd(s)
	case a.starves(s, now):
		s.due = now.Add(turnLook)
	default:
		a.flushPartial(s)
	}
}

// starves reports whether a rank has not had its turn to write the end of a line that was due.
func (a *agent) starves(s *stream, now time.Time) bool {
	p := a.ranks[a.local[s.rank]]
	if p.ended {
		return false
	}
	ready, used := a.ready(p.pid)
	if s.turn.begun.IsZero() {
		s.turn = turn{now, used}
	}
	ready = ready || a.pending(s) // it has run just now
	return s.turn.missed(now, ready, used, lineTurn, turnTime)
}

// awaken continues with what waited while the launcher and the ranks were stopped.
func (a *agent) awaken() {
	if a.asleep {
		a.asleep = false
		for s := range a.streams() {
			a.awaitLineEnd(s)
		}
		a.lingerOn(time.Now())
	}
}

// streams returns the output of all ranks.
func (a *agent) streams() iter.Seq[*stream] {
	return func(yield func(*stream) bool) {
		for _, p := range a.ranks {
			if !yield(&p.stdout) || !yield(&p.stderr) {
				return
			}
		}
	}
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
	p.lastOutput = keepEnd(p.lastOutput, data, saidSize)
	if a.inTail(s) {
		p.tail = keepEnd(p.tail, data, tailSize)
	}
}

// inTail reports whether the report of a rank's failure shows the end of s.
func (a *agent) inTail(s *stream) bool { return s.kind == ctl.Stderr || a.launch.Merge }

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
// the rank waits, while orders and news continue.
func (a *agent) halt(s *stream) {
	if !s.halted {
		s.halted, s.due = true, time.Time{}
		a.forget(s.fd)
		if len(a.halted) == 0 {
			a.haltedAt = time.Now()
		}
		a.halted = append(a.halted, s)
	}
}

// credit continues with the streams that were halted.
func (a *agent) credit(n int) {
	a.window += n
	resumed := a.halted
	a.halted = nil
	if len(resumed) > 0 && time.Since(a.haltedAt) > linePatience {
		a.lingerOn(time.Now())
	}
	for _, s := range resumed {
		s.halted = false
		a.awaitLineEnd(s)
		src := stdout
		if s.kind == ctl.Stderr {
			src = stderr
		}
		if s.fd >= 0 && a.watch(s.fd, src, a.local[s.rank], unix.EPOLLIN) != nil {
			a.closeStream(s)
		}
	}
}
