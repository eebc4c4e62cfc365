package mem

import "time"

// A Distance is a writer's estimate of whether it shares a cache with the reader of its memory.
// Without a common cache, taking a line over from the reader costs so much that non-temporal
// stores are faster, although the reader then loads from memory (1 MiB between two such cores:
// 58 us, with plain stores 400; 64 KiB in a window: 4.9 and 28). With a common cache they are
// slower. The processors of a virtual machine move while it runs, so the Distance measures how
// long copies take. The zero Distance is ready for use by one goroutine.
type Distance struct {
	rest        int // how many copies are not timed, because one was fast
	slow        int // how many copies in a row were slow
	nonTemporal int // how many more copies use non-temporal stores
	term        int // how many copies used them in the last term
}

const (
	// timed is the length in bytes from which copies are timed.
	timed = 8 << 10
	// slowCopy is the time in ns per KiB from which a copy is slow. With a common cache a
	// copy takes 20 to 120, without one 400 to 600.
	slowCopy = 250
	// slowCopies is how many slow copies in a row start a term of non-temporal stores.
	slowCopies = 3
	// The first term is leastTerm copies long. Each time the next measurement confirms it,
	// the term doubles, up to mostTerm.
	leastTerm, mostTerm = 64, 4096
	// untimed copies follow a fast one: the clock costs as much as 2 KiB of a copy.
	untimed = 7
)

// epoch is what clock counts from.
var epoch = time.Now()

func clock() time.Duration { return time.Since(epoch) }

// Copy copies src to dst, memory of the same length that the reader will read.
func (d *Distance) Copy(dst, src []byte) {
	switch {
	case len(src) < timed:
		copy(dst, src)
	case d.rest > 0:
		d.rest--
		copy(dst, src)
	case d.nonTemporal > 0:
		d.nonTemporal--
		CopyNonTemporal(dst, src)
	default:
		start := clock()
		copy(dst, src)
		d.learn(len(src), clock()-start)
	}
}

// Fork copies src to dst as Copy does, and to own: with non-temporal stores if nonTemporal is set.
func (d *Distance) Fork(dst, own, src []byte, nonTemporal bool) {
	if d.rest > 0 {
		d.rest--
		Fork(own, dst, src, nonTemporal)
		return
	}
	d.Copy(dst, src)
	if nonTemporal {
		CopyNonTemporal(own, src)
	} else {
		copy(own, src)
	}
}

// Far reports whether copies use non-temporal stores at present.
func (d *Distance) Far() bool { return d.nonTemporal > 0 }

// learn updates d with the time that a copy of n bytes took.
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
	d.nonTemporal = d.term
}
