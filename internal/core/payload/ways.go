package payload

import (
	"math/bits"
	"time"

	"gompi/internal/core/path"
)

// Ways are a receiver's trials of long messages from a peer of its host, between ordinary memory,
// by their length as a power of two. The receiver copies such a message through the kernel from
// the sender's memory, or asks for the message in frames. The sender names the place, and the
// receiver chooses by its trials. Only messages without an earlier pending message are timed,
// from the receiver's request until all has arrived.
type Ways struct {
	trials [64]path.Trial
	open   int // messages under way that have the choice
	turn   path.Turn
	start  time.Time // of the message that is timed
}

// A Choice states a message's part in trials.
type Choice uint8

const (
	NoChoice Choice = iota
	Untimed         // had the choice, but is not timed
	Timed
)

// Lengths define which messages inside a host the receiver may read from the sender's ordinary
// memory, unless they are eager: messages of From to Below-1 bytes at first, and messages of
// TriesFrom bytes and more if trials find that faster.
type Lengths struct{ From, Below, TriesFrom int }

// Has reports whether messages of n bytes are read at first.
func (l *Lengths) Has(n int) bool { return n >= l.From && n < l.Below }

// Choose begins a message of size bytes, and reports whether the receiver is to copy it. End
// follows with the Choice.
func (w *Ways) Choose(l *Lengths, size int) (fetch bool, c Choice) {
	t := &w.trials[bits.Len(uint(size))]
	t.Begin(l.Has(size), size)
	first := w.open == 0
	w.open++
	if size < l.TriesFrom || !first {
		return t.Cross, Untimed
	}
	turn := t.Next()
	c = Untimed
	switch turn {
	case path.Conclude:
		t.Decide(t.Times(), size)
	case path.TimePresent, path.TimeOther:
		w.turn, w.start, c = turn, time.Now(), Timed
	}
	return t.Crosses(turn), c
}

// End ends a message of size bytes that has had the choice.
func (w *Ways) End(c Choice, size int, err error) {
	if w.open--; c == Timed && err == nil {
		w.trials[bits.Len(uint(size))].Note(w.turn, time.Since(w.start))
	}
}
