package mem

import "time"

// A Distance is a writer's estimate of whether it shares a cache with the reader of its memory.
// Without a common cache, taking a line over from the reader costs so much that non-temporal
// stores are faster, although the reader then loads from memory (1 MiB between two such cores:
// 58 us, with plain stores 400; 64 KiB in a window: 4.9 and 28). With a common cache they are
// slower. The processors of a virtual machine move while it runs, so the Distance measures how
// long copies take, and compares them with non-temporal ones of the same bytes. It is for one
// goroutine.
type Distance struct {
	// From is the length in bytes from which copies are timed and may be non-temporal. It is a
	// few KiB at least, since the clock costs as much as 2 KiB of a copy.
	From int
	// StringFrom is the length in bytes from which copies use the string instruction, near and far;
	// none do if it is 0. It is for processors on which that is fastest, so nothing is measured.
	StringFrom int

	rest        int32         // how many copies are not timed, because one was fast
	slow        int32         // how many copies in a row were slow
	nonTemporal int32         // how many more copies use non-temporal stores
	term        int32         // how many copies used them in the last term
	compared    int32         // how many more copies are compared with least before it is taken again
	least       time.Duration // that a MiB took with non-temporal stores, to no reader
}

const (
	// slowCopy is how many times as long as with non-temporal stores a slow copy takes. Those to
	// memory that no other core has touched meanwhile take about 25 ns a KiB on an AMD EPYC (26/2).
	// There other copies take 20 to 120 with a common cache, without one 400 to 600.
	slowCopy = 8
	// slowCopies is how many slow copies in a row start a term of non-temporal stores.
	slowCopies = 3
	// The first term is leastTerm copies long. Each time the next measurement confirms it,
	// the term doubles, up to mostTerm.
	leastTerm, mostTerm = 64, 4096
	// untimed copies follow a fast one.
	untimed = 7
	// compareEvery is how many copies are compared with the same non-temporal ones, which take some
	// microseconds: the best of trials, each of copies copies of this many bytes, as what disturbs
	// one of them makes it longer. Less than all copies of a trial say nothing, since the first
	// fill buffers.
	compareEvery = 4096
	trials       = 3
	trialCopies  = 4
	trialBytes   = 16 << 10
)

// epoch is what clock counts from.
var epoch = time.Now()

func clock() time.Duration { return time.Since(epoch) }

// Copy copies src to dst, memory of the same length that the reader will read.
func (d *Distance) Copy(dst, src []byte) {
	switch {
	case d.strings(len(src)):
		CopyString(dst, src)
	case len(src) < d.From:
		copy(dst, src)
	case d.rest > 0:
		d.rest--
		copy(dst, src)
	case d.nonTemporal > 0:
		d.nonTemporal--
		CopyNonTemporal(dst, src)
	default:
		d.timed(dst, src)
	}
}

// strings reports whether a copy of n bytes uses the string instruction.
func (d *Distance) strings(n int) bool { return n >= d.StringFrom && d.StringFrom > 0 }

// timed copies src to dst, and learns from the time that it takes.
func (d *Distance) timed(dst, src []byte) {
	start := clock()
	copy(dst, src)
	took := clock() - start
	if d.compared--; d.compared < 0 {
		d.compare(dst, src)
	}
	d.learn(len(src), took)
}

// Fork copies src to dst as Copy does, and to own: with non-temporal stores if nonTemporal is set.
func (d *Distance) Fork(dst, own, src []byte, nonTemporal bool) {
	if d.untimed(len(src)) {
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

// untimed reports whether a copy of n bytes is plain and need not be timed, and counts it.
func (d *Distance) untimed(n int) bool {
	if n < d.From || d.rest == 0 || d.strings(n) {
		return n < d.From && !d.strings(n)
	}
	d.rest--
	return true
}

// Far reports whether copies use non-temporal stores at present.
func (d *Distance) Far() bool { return d.nonTemporal > 0 }

// compare copies src to dst again, where the reader does not look yet, with non-temporal stores.
func (d *Distance) compare(dst, src []byte) {
	n := min(len(src), trialBytes)
	for range trials {
		start := clock()
		for range trialCopies {
			CopyNonTemporal(dst[:n], src)
		}
		if took := perMiB(trialCopies*n, clock()-start); d.least == 0 || took < d.least {
			d.least = took
		}
	}
	d.compared = compareEvery
}

// perMiB returns how long a MiB takes where n bytes took so long.
func perMiB(n int, took time.Duration) time.Duration { return took << 20 / time.Duration(max(n, 1)) }

// learn updates d with the time that a copy of n bytes took.
func (d *Distance) learn(n int, took time.Duration) {
	if perMiB(n, took) < slowCopy*d.least {
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
