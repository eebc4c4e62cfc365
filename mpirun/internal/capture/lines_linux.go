package capture

import (
	"bytes"
	"time"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/proc"
)

// sendLines sends the lines that data ends, and keeps the beginning of the next.
func (all *Outputs) sendLines(s *stream, data []byte) {
	end := bytes.LastIndexByte(data, '\n') + 1
	if len(s.partial)+len(data)-end >= longLine {
		end = len(data)
	}
	if end > 0 {
		all.send(s, append(s.partial, data[:end]...))
		s.partial, s.due = s.partial[:0], time.Time{}
	}
	if end == len(data) {
		return
	}
	s.partial = append(s.partial, data[end:]...)
	if s.due.IsZero() {
		all.awaitLineEnd(s)
	}
}

func (all *Outputs) send(s *stream, data []byte) {
	all.Window -= ctl.Cost(len(data))
	all.Report(&ctl.Output{Rank: s.of.rank, Stream: s.kind, Data: data})
}

// flush sends a line without its end.
func (all *Outputs) flush(s *stream) {
	if len(s.partial) > 0 {
		all.send(s, s.partial)
	}
	s.partial, s.due = s.partial[:0], time.Time{}
}

// awaitLineEnd has the partial line of s sent, if there is one, unless its end comes in time.
func (all *Outputs) awaitLineEnd(s *stream) {
	if len(s.partial) > 0 && !s.halted {
		s.due, s.turn = time.Now().Add(LineTimeout), proc.Turn{}
		all.dueAt(s.due)
	}
}

// dueAt sets when partial lines are due, unless some are before t.
func (all *Outputs) dueAt(t time.Time) {
	if all.Due.IsZero() || t.Before(all.Due) {
		all.Due = t
	}
}

// Continue gives partial lines their time once more, after the ranks have been stopped.
func (all *Outputs) Continue() {
	for s := range all.streams() {
		all.awaitLineEnd(s)
	}
}

// SendPartials sends the partial lines that are due at now. stopped states that the ranks are:
// their lines wait for Continue.
func (all *Outputs) SendPartials(now time.Time, stopped bool) {
	if all.Due.IsZero() || now.Before(all.Due) {
		return
	}
	all.Due = time.Time{}
	for s := range all.streams() {
		if !s.due.IsZero() && !now.Before(s.due) {
			all.sendPartial(s, now, stopped)
		}
		if !s.due.IsZero() {
			all.dueAt(s.due)
		}
	}
}

// sendPartial sends a partial line that was due, unless its end has come meanwhile or may still.
func (all *Outputs) sendPartial(s *stream, now time.Time, stopped bool) {
	due := s.due
	switch all.drain(s); {
	case s.due != due: // it is another line, or halted
	case stopped:
		s.due = time.Time{}
	case now.Sub(due) > stoppedTime:
		all.awaitLineEnd(s)
	case all.starves(s, now):
		s.due = now.Add(proc.TurnLook)
	default:
		all.flush(s)
	}
}

// starves reports whether a rank has not had its turn to write the end of a line that was due.
func (all *Outputs) starves(s *stream, now time.Time) bool {
	pid := s.of.process()
	if pid == 0 {
		return false
	}
	ready, used := all.Ready(pid)
	if s.turn.Begun.IsZero() {
		s.turn = proc.Turn{Begun: now, Used: used}
	}
	ready = ready || s.pending() // it has run just now
	return s.turn.Missed(now, ready, used, proc.ClockTick, proc.TurnTime)
}
