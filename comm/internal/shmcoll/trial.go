package shmcoll

import (
	"math/bits"
	"time"
	"unsafe"

	"gompi/comm/internal/call"
	"gompi/comm/internal/path"
)

// Whether it is faster to copy once, through the kernel, or twice, through bounce buffers, depends
// on the processors, and on where they are at present: those of a virtual machine move. So members
// try. For calls of one kind and similar length they time, now and then, some calls either way, tell
// each other the times with the next such call, and go the way whose slowest member was faster. They
// count the same calls, and so try the same ones.
//
// (np=2 on two processors of an AMD EPYC, copied and through the kernel. Far: bcast of 64 KiB 11.0
// and 4.7 us, of 1 MiB 116 and 42, of 16 MiB 1.7 and 1.0 ms; allgather of 64 KiB 16.0 and 7.8 us, of
// 1 MiB 175 and 109. Near: bcast of 1 MiB 24 and 43 us, allgather 58 and 97.)

const (
	// samples is how many calls either way are timed in a trial; the fastest counts.
	samples = 2
	// The first trial comes after leastCalls calls, or more of short ones, which take long to warm
	// up, and of those longer than longCalls, of which a program may make few. Each time a trial
	// confirms the way, the number doubles, up to mostCalls, or less of calls longer than 1 MiB,
	// but not than fewCalls.
	leastCalls, fewCalls, mostCalls = 16, 128, 2048
	longCalls                       = 4 << 20
	// worth is how many percent of the time the other way may take to be taken.
	worth = 90
	// warm is so much memory that calls have to go through before the way is as fast as it will be:
	// the bounce buffers are not in the caches.
	warm, mostWarming = 2 << 20, 32
)

// A trial is the state of the calls of one kind and similar length.
type trial struct {
	begun   bool
	cross   bool     // the way that calls go
	calls   int      // since the last trial
	after   int      // so many calls comes the next one
	least   int      // value of after, after a change
	warming int      // so many calls of a trial go the other way before any is timed
	times   [2]int64 // ns, of this member: the present way, and the other
}

// trials are the trials by kind and by length of the vector, as a power of two.
type trials [call.Exscan + 1][64]trial

// A part is what a call does in a trial.
type part int8

const (
	present part = iota // time the present way
	other               // time the other way
	noPart
	warmUp // go the other way
	tell   // tell the times, and decide
)

// begin sets the way that calls of so many bytes go at first, and when the first trial is.
func (t *trial) begin(cross bool, bytes int) {
	*t = trial{begun: true, cross: cross, warming: min(warm/max(bytes, 1), mostWarming)}
	if t.least = max(leastCalls, 4*t.warming); bytes > longCalls {
		t.least = 4 * leastCalls
	}
	t.after = t.least
}

// next counts a call, and returns its part.
func (t *trial) next() part {
	t.calls++
	switch i := t.calls - t.after; {
	case i <= 0:
		return noPart
	case i <= samples:
		return present
	case i <= samples+t.warming:
		return warmUp
	case i <= samples+t.warming+samples:
		return other
	}
	return tell
}

// note notes the time of a call of a trial.
func (t *trial) note(p part, took int64) {
	first := t.calls - t.after
	if p == other {
		first -= samples + t.warming
	}
	if first == 1 || took < t.times[p] {
		t.times[p] = took
	}
}

// decide ends a trial of calls of so many bytes, in which the slowest members took so long.
func (t *trial) decide(slowest [2]int64, bytes int) {
	t.calls = 0
	if slowest[other]*100 < slowest[present]*worth {
		t.cross, t.after = !t.cross, t.least
		return
	}
	t.after = min(2*t.after, max(mostCalls<<20/max(bytes, 1<<20), fewCalls))
}

// try runs o along p through the kernel, or along its Otherwise, as trials have shown.
func (c *Comm) try(p *path.Path, o *call.Call) error {
	bytes := c.paths.Payload(o)
	if c.trials == nil {
		c.trials = new(trials)
	}
	t := &c.trials[o.Kind][bits.Len(uint(bytes))]
	if !t.begun {
		t.begin(c.paths.Reads(bytes), bytes)
	}
	if !c.paths.Tries(bytes) {
		return c.goes(p, o, t.cross)
	}
	switch part := t.next(); part {
	case noPart:
	case warmUp:
		return c.goes(p, o, !t.cross)
	case tell:
		if err := c.tellTimes(t, bytes); err != nil {
			return err
		}
	default:
		took, err := c.timed(p, o, t.cross == (part == present))
		t.note(part, took)
		return err
	}
	return c.goes(p, o, t.cross)
}

// goes runs o one way or the other.
func (c *Comm) goes(p *path.Path, o *call.Call, cross bool) error {
	if cross {
		if done, err := c.singleCopy(o, true); done || err != nil {
			return err
		}
	}
	return c.copied(p.Otherwise, o)
}

// timed runs o one way or the other, and returns how many nanoseconds it takes from when all members
// have begun it.
func (c *Comm) timed(p *path.Path, o *call.Call, cross bool) (took int64, err error) {
	if err := c.Barrier(); err != nil {
		return 0, err
	}
	start := time.Now()
	err = c.goes(p, o, cross)
	return int64(time.Since(start)), err
}

// tellTimes exchanges the times of a trial, and ends it.
func (c *Comm) tellTimes(t *trial, bytes int) error {
	const size = int(unsafe.Sizeof(t.times))
	s, err := c.Exchange((*[size]byte)(unsafe.Pointer(&t.times))[:], true)
	if err != nil {
		return err
	}
	var slowest [2]int64
	for j := range c.Size() {
		times := (*[2]int64)(unsafe.Pointer(unsafe.SliceData(c.Payload(j, s, 0, size))))
		slowest[present] = max(slowest[present], times[present])
		slowest[other] = max(slowest[other], times[other])
	}
	t.decide(slowest, bytes)
	return nil
}
