package engine

import (
	"math/bits"
	"time"

	"gompi/comm/internal/trial"
)

// A long message between ordinary memory inside a host goes one of two ways: the receiver copies it
// from where it lies, through the kernel, or asks for it in frames. The sender tells the place, and
// the receiver chooses, as trials of its own have shown. It times only messages before which no
// other one waits, from when it asks until it has all.

// ways are a receiver's trials of messages from one peer, by their length as a power of two.
type ways struct {
	trials [64]trial.Trial
	open   int // messages under way that have the choice
	timed  *Request
	part   trial.Part
	start  time.Time
}

// SetReads sets which messages inside a host the receiver may read from the sender's ordinary
// memory, if they are not eager: those of the given lengths at first, and those of so many bytes
// and more if trials find that faster.
func (e *Engine) SetReads(lengths Range, tries int) {
	e.progress.Lock()
	defer e.progress.Unlock()
	e.reads, e.tries = lengths, tries
}

func (x Range) has(n int) bool { return n >= x.From && n < x.Below }

// fetches reports whether r is to be copied from a place that p has told.
func (e *Engine) fetches(p *peer, r *Request, place uint64) bool {
	if p.getter.Maps(place) {
		return true
	}
	if p.ways == nil {
		p.ways = new(ways)
	}
	w := p.ways
	t := &w.trials[bits.Len(uint(r.size))]
	t.Begin(e.reads.has(r.size), r.size)
	first := w.open == 0
	w.open++
	if r.choice = true; r.size < e.tries || !first {
		return t.Cross
	}
	part := t.Next()
	switch part {
	case trial.Tell:
		t.Decide(t.Times(), r.size)
	case trial.Present, trial.Other:
		w.timed, w.part, w.start = r, part, time.Now()
	}
	return t.Goes(part)
}

// chosen ends a message that has had the choice.
func (e *Engine) chosen(r *Request) {
	r.choice = false
	w := e.peer(r.peer).ways
	w.open--
	if w.timed != r {
		return
	}
	if w.timed = nil; r.err == nil {
		w.trials[bits.Len(uint(r.size))].Note(w.part, time.Since(w.start))
	}
}

// lost makes a message that goes another way than it was to go count for nothing.
func (w *ways) lost(r *Request) {
	if w != nil && w.timed == r {
		w.timed = nil
	}
}
