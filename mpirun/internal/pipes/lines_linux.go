package pipes

import (
	"bytes"
	"time"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/proc"
)

// sendLines sends the lines completed by data, and keeps the rest.
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

// flush sends a partial line.
func (all *Outputs) flush(s *stream) {
	if len(s.partial) > 0 {
		all.send(s, s.partial)
	}
	s.partial, s.due = s.partial[:0], time.Time{}
}

// awaitLineEnd sets the deadline for the end of s's partial line, if there is one.
func (all *Outputs) awaitLineEnd(s *stream) {
	if len(s.partial) > 0 && !s.halted {
		s.due, s.turn = time.Now().Add(LineTimeout), proc.Turn{}
		all.dueAt(s.due)
	}
}

// dueAt sets Due to t unless it is earlier.
func (all *Outputs) dueAt(t time.Time) {
	if all.Due.IsZero() || t.Before(all.Due) {
		all.Due = t
	}
}

// Continue starts the time of partial lines again, after the ranks have been stopped.
func (all *Outputs) Continue() {
	for s := range all.streams() {
		all.awaitLineEnd(s)
	}
}

// SendPartials sends the partial lines due at now. stopped states that the ranks are stopped:
// then their lines wait for Continue.
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

// sendPartial sends a due partial line, unless its end has come or may still come.
func (all *Outputs) sendPartial(s *stream, now time.Time, stopped bool) {
	due := s.due
	switch all.drain(s); {
	case s.due != due: // another line, or halted
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

// starves reports whether a rank has lacked a turn on a processor to write the end of a due line.
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
