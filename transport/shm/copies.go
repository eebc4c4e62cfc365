package shm

import (
	"time"
	"unsafe"

	"gompi/internal/mem"
	"gompi/internal/ways"
)

// This file chooses how a writer copies payloads into its ring. Where two cores share a cache,
// plain stores are cheapest. Where they do not, taking a line over from the reader costs so much
// that non-temporal stores are, although the reader then loads from memory. Some processors are
// fastest by their string instruction (np=2 on an AMD EPYC 25/17, us, plain and non-temporal: near
// latency of 64 KiB 3.5 and 8, far 30 and 12). The processors of a virtual machine move. So the
// writer times a record now and then, the reader reports the time of copying that record out, and a
// ways.Chooser takes the way with the least sum.

// copies are the ways of a copy.
var copies = mem.Copies

// pace is the pace of all writers. In its first lap a ring is in no cache of the reader.
var pace = ways.Pace{Ways: int8(len(copies)), First: 16, Every: 8}

const (
	// plainInC is the number of payloads with a choice that C copies in a row while plain copies
	// are cheapest. For the next one C calls Go, which takes a quarter of a microsecond (an MPI
	// program, np=2 on an AMD EPYC 25/17, always plain, and with 31 and 255 in a row: near, bw of 4
	// KiB .30, .41 and .32 us; far, bw of 8 KB 4.4 and, with 31, 1.5).
	plainInC = 255
	// chosenFrom is the length in bytes of the shortest payload with a choice: looking at the clock
	// costs as much as copying a KiB.
	//
	//c:const GOMPI_RING_
	chosenFrom = 2<<10 + 1
	// longFrom is the length from which on payloads have a choice of their own.
	longFrom = 8 << 10
	// owned is the length up to which a record's lines are fetched for writing before the writes.
	owned = 8 << 10
)

// A copier chooses the copies of a writer.
type copier struct {
	short, long ways.Chooser
	due         *ways.Chooser // waits for the cost of a record; nil: none does
	at          uint64        // the position of that record
	n           int           // bytes of its payload
	took        time.Duration // the writer's copy
}

func newCopier() *copier { return &copier{short: ways.New(pace), long: ways.New(pace)} }

// of returns the choice for payloads of n bytes.
func (c *copier) of(n int) *ways.Chooser {
	if n < longFrom {
		return &c.short
	}
	return &c.long
}

// copy copies src to dst, for a record at w's tail, and returns the marks of that record.
func (w *writer) copy(dst, src []byte) (marks int) {
	c, n, way, times := w.copies, len(src), 0, false
	if n >= chosenFrom {
		if w.settle(); c.due != nil {
			way = c.of(n).Present()
		} else {
			way, times = c.of(n).Next()
		}
		if w.plain = 0; c.short.Present() == 0 {
			w.plain = plainInC
		}
	}
	if way == 0 && n > 2*lineSize && n <= owned {
		// Fetch all lines at once: stores fetch fewer lines at a time (np=2 near on an Intel Xeon,
		// messages of 256 B .41 and .37 us, of 1 KiB .54 and .49). Skip the first line, which the
		// reader polls.
		mem.PrefetchToWrite(unsafe.Pointer(&dst[lineSize]), n-lineSize)
	}
	if !times {
		copies[way](dst, src)
		return 0
	}
	start := clock()
	copies[way](dst, src)
	c.due, c.at, c.n, c.took = c.of(n), w.tail, n, clock()-start
	return timed
}

// settle notes the cost of the timed record, once the reader has given the record up. The reader
// stores its report before the position up to which it has read.
func (w *writer) settle() {
	c := w.copies
	if c.due == nil {
		return
	}
	read := w.seen > c.at
	if out, ok := reported(w.cost.Load(), c.at); ok {
		c.due.Note(int64(c.took+out) << 20 / int64(c.n))
	} else if read {
		c.due.Lost()
	} else {
		return
	}
	c.due = nil
}

// report is the content of control.cost: the record at a position was copied out in this time.
func report(at uint64, took time.Duration) uint64 {
	return at/lineSize<<32 | uint64(min(max(took, 1), 1<<32-1))
}

// reported returns the time in a report on the record at a position.
func reported(cost, at uint64) (took time.Duration, ok bool) {
	took = time.Duration(cost & (1<<32 - 1))
	return took, took > 0 && cost>>32 == at/lineSize&(1<<32-1)
}

// epoch is the zero of clock.
var epoch = time.Now()

func clock() time.Duration { return time.Since(epoch) }
