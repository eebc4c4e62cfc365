package mem

import "time"

// A Distance is what a writer of shared memory knows of how far its reader is. Where the two share
// no cache, taking a line over from the reader costs so much that it is faster to
// store past the caches, and have the reader fetch all from memory (1 MiB between
// two such cores: 58 us, through the caches 400; 64 KiB in a window: 4.9 and 28).
// Elsewhere that is the slower way. The processors of a virtual machine are moved,
// so nobody can be asked once: the time that copies take tells. The zero Distance is
// ready for use, by one goroutine.
type Distance struct {
	rest int // how many copies are not timed, because one was fast
	slow int // copies in a row that were
	past int // how many copies are still to go past the caches
	term int // how many went, the last time
}

const (
	// timed is the least length whose copy is timed.
	timed = 8 << 10
	// slowCopy is how many nanoseconds a copy of a KiB takes that is slow. Within
	// common caches it takes 20 to 120, without 400 to 600.
	slowCopy = 250
	// slowCopies in a row are no accident.
	slowCopies = 3
	// A verdict stands for leastTerm copies, and each time it is confirmed for
	// twice as many.
	leastTerm, mostTerm = 64, 4096
	// untimed copies follow a fast one: the clock costs as much as 2 KiB of a copy.
	untimed = 7
)

// epoch is what clock counts from.
var epoch = time.Now()

func clock() time.Duration { return time.Since(epoch) }

// Copy copies src to dst, which is as long and which the reader reads.
func (d *Distance) Copy(dst, src []byte) {
	switch {
	case len(src) < timed:
		copy(dst, src)
	case d.rest > 0:
		d.rest--
		copy(dst, src)
	case d.past > 0:
		d.past--
		Stream(dst, src)
	default:
		start := clock()
		copy(dst, src)
		d.learn(len(src), clock()-start)
	}
}

// Fork copies src to dst as Copy does, and to own, past the caches if past.
func (d *Distance) Fork(dst, own, src []byte, past bool) {
	if d.rest > 0 {
		d.rest--
		Fork(own, dst, src, past)
		return
	}
	d.Copy(dst, src)
	if past {
		Stream(own, src)
	} else {
		copy(own, src)
	}
}

// Far reports whether copies go past the caches at present.
func (d *Distance) Far() bool { return d.past > 0 }

// learn notes how long a copy of n bytes took.
func (d *Distance) learn(n int, took time.Duration) {
	if int(took) < n>>10*slowCopy {
		d.slow, d.term, d.rest = 0, 0, untimed
		return
	}
	if d.slow++; d.slow < slowCopies {
		return
	}
	d.slow = 0
	d.term = min(max(2*d.term, leastTerm), mostTerm)
	d.past = d.term
}
