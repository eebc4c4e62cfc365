package mem

import "time"

// A Distance is a writer's estimate of whether it shares a cache with the reader of its memory.
// Without a common cache, taking a line over from the reader costs so much that non-temporal stores
// are faster, although the reader then loads from memory (1 MiB between two such cores: 58 us, with
// plain stores 400; 64 KiB in a window: 4.9 and 28). With a common cache they are slower. The
// processors of a virtual machine move while it runs. So the Distance measures the time of copies,
// and compares it with non-temporal copies of the same bytes. A Distance is for one goroutine.
type Distance struct {
	// From is the length in bytes from which copies are timed and may be non-temporal. From is a
	// few KiB at least, since the clock costs as much as 2 KiB of a copy.
	From int
	// StringFrom is the length in bytes from which copies use the string instruction, near and far;
	// 0 means never. StringFrom is for processors on which that instruction is fastest, so such
	// copies are not measured.
	StringFrom int

	rest        int32         // the number of copies to leave untimed, after a fast one
	slow        int32         // the number of slow copies in a row
	nonTemporal int32         // the number of copies still to make with non-temporal stores
	term        int32         // the number of such copies in the last term
	compared    int32         // the number of copies still to compare with least before measuring it again
	least       time.Duration // the shortest time of a MiB with non-temporal stores, without a reader
}

const (
	// slowCopy is the ratio of a slow copy's time to a non-temporal copy's. A non-temporal copy to
	// memory that no other core has touched meanwhile takes about 25 ns a KiB on an AMD EPYC
	// (26/2). There other copies take 20 to 120 with a common cache, without one 400 to 600.
	slowCopy = 8
	// slowCopies is the number of slow copies in a row that start a term of non-temporal stores.
	slowCopies = 3
	// The first term is leastTerm copies long. Each time that the next measurement confirms the
	// term, the term doubles, up to mostTerm.
	leastTerm, mostTerm = 64, 4096
	// untimed copies follow a fast one.
	untimed = 7
	// compareEvery is the number of copies compared with one measurement of non-temporal copies.
	// The measurement takes some microseconds: the fastest of trials, each of trialCopies copies of
	// trialBytes, as disturbances only lengthen a trial. Shorter trials show nothing, since the
	// first copies fill buffers.
	compareEvery = 4096
	trials       = 3
	trialCopies  = 4
	trialBytes   = 16 << 10
)

// epoch is the zero of clock.
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

// timed copies src to dst, and learns from the duration.
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

// untimed reports whether a copy of n bytes is plain and untimed, and counts that copy.
func (d *Distance) untimed(n int) bool {
	if n < d.From || d.rest == 0 || d.strings(n) {
		return n < d.From && !d.strings(n)
	}
	d.rest--
	return true
}

// Far reports whether copies use non-temporal stores at present.
func (d *Distance) Far() bool { return d.nonTemporal > 0 }

// compare copies src to dst again with non-temporal stores, before the reader looks there.
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

// perMiB returns the time per MiB of a copy of n bytes.
func perMiB(n int, took time.Duration) time.Duration { return took << 20 / time.Duration(max(n, 1)) }

// learn updates d with the duration of a copy of n bytes.
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
