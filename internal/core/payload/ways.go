package payload

import (
	"math/bits"
	"time"

	"gompi/internal/ways"
)

// A choice is a receiver's choice for long messages from a peer of its host, between ordinary
// memory: to copy through the kernel from the place that the sender names, or to ask for frames.
// Only messages without an earlier pending one are timed, from the receiver's request to the end.
type choice struct {
	choosers [64]ways.Chooser // by the length as a power of two
	open     int              // messages under way that have the choice
	timed    *ways.Chooser    // of the message that is timed
	start    time.Time        // of that message
}

// The ways of a choice.
const (
	inFrames = iota
	byKernel
	numWays
)

// A Choice states a message's part in the choice of its peer.
type Choice uint8

const (
	NoChoice Choice = iota
	Untimed         // had the choice, but is not timed
	Timed
	Spoilt // was timed, but has not gone the chosen way
)

// Lengths define which messages inside a host the receiver may read from the sender's ordinary
// memory, unless eager: of From to Below-1 bytes at first, of TriesFrom bytes and more if faster.
type Lengths struct{ From, Below, TriesFrom int }

// Has reports whether messages of n bytes are read at first.
func (l *Lengths) Has(n int) bool { return n >= l.From && n < l.Below }

// warm is the bytes that messages have to move before a way reaches its full speed.
const warm = 2 << 20

// pace returns the pace of messages of size bytes.
func (l *Lengths) pace(size int) ways.Pace {
	p := ways.Pace{Ways: numWays, First: 4, Every: 16, Warm: int16(min(warm/max(size, 1), 32))}
	if l.Has(size) {
		p.At = byKernel
	}
	return p
}

// choose begins a message of size bytes, and reports whether the receiver is to copy it. end
// follows with the Choice.
func (w *choice) choose(l *Lengths, size int) (fetch bool, c Choice) {
	x := &w.choosers[bits.Len(uint(size))]
	if x.IsNew() {
		*x = ways.New(l.pace(size))
	}
	first := w.open == 0
	w.open++
	if size < l.TriesFrom || !first {
		return x.Present() == byKernel, Untimed
	}
	way, times := x.Next()
	if c = Untimed; times {
		w.timed, w.start, c = x, time.Now(), Timed
	}
	return way == byKernel, c
}

// end ends a message that has had the choice.
func (w *choice) end(c Choice, err error) {
	w.open--
	switch {
	case c == Timed && err == nil:
		w.timed.Note(int64(time.Since(w.start)))
	case c == Timed || c == Spoilt:
		w.timed.Lost()
	}
}
