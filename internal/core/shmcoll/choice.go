package shmcoll

import (
	"math/bits"
	"time"
	"unsafe"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/path"
	"gompi/internal/mem"
	"gompi/internal/ways"
)

// Members choose how a call moves its data: through bounce buffers, by any of mem.Copies, or by the
// kernel from vector to vector. A ways.Chooser chooses for all calls of a kind and of similar
// length, on each member: all members count the same calls, and note the time of the slowest member,
// which they exchange in the next such call. So all take the same way. The ways combine operands in
// the same order.

// byKernel is the way behind mem.Copies.
const byKernel = len(mem.Copies)

// chosenFrom is the length of the shortest vector with a choice: timing a call takes half a
// microsecond.
const chosenFrom = 2 << 10

// A choice is the choice for calls of a kind and of similar length.
type choice struct {
	ways.Chooser
	took time.Duration // the time of the timed call on this member, 0 if the call has failed
}

// choices are by kind, nil before the first call of a kind, and by the length of the vector as a
// power of two.
type choices [calls.Count]*[64]choice

// A timing is of a call that is timed.
type timing struct {
	of    *choice // nil if not timed
	start time.Time
}

// end notes the duration of the call.
func (t *timing) end() {
	if t.of != nil {
		t.of.took = max(time.Since(t.start), 1)
	}
}

// choose returns the way of a call, the same on all members, as k says at first. A timing begins when
// all members have begun the call. Timings of ranks that share processors are unreliable.
func (c *Collectives) choose(k path.KernelCopy, o *call.Call, r *run) (way int, err error) {
	bytes := r.t.Longest * r.t.Size
	if !o.Kind.LocalCounts() {
		bytes = c.paths.Payload(o)
	}
	r.chosen = true
	switch {
	case k.First && !k.Tries:
		return byKernel, nil
	case bytes < chosenFrom || !k.Tries && c.paths.Oversubscribed():
		return 0, nil
	}
	ofKind := &c.choices[o.Kind]
	if *ofKind == nil {
		*ofKind = new([64]choice)
	}
	x := &(*ofKind)[bits.Len(uint(bytes))]
	switch {
	case x.IsNew():
		x.Chooser = ways.New(pace(k, bytes))
	case x.Waits():
		if err := c.exchangeTime(x); err != nil {
			return 0, err
		}
	}
	way, times := x.Next()
	if times {
		if err = c.Barrier(); err == nil {
			x.took, r.timing = 0, timing{x, time.Now()}
		}
	}
	return way, err
}

// lap is the bytes around a large buffer.
const lap = 2 << 20

// pace returns the pace of calls of so many bytes. In the first lap a buffer is new, and in no cache
// of the others. After some calls by the kernel the buffers have left the caches.
func pace(k path.KernelCopy, bytes int) ways.Pace {
	p := ways.Pace{Ways: int8(byKernel), First: int16(4 + min(lap/bytes, 1000)), Every: 64, Warm: 2}
	if k.Tries {
		p.Ways, p.Warm = p.Ways+1, int16(min(lap/bytes, 32))
	}
	if k.First {
		p.At = int8(byKernel)
	}
	return p
}

// exchangeTime exchanges the time of the timed call.
func (c *Collectives) exchangeTime(x *choice) error {
	const size = int(unsafe.Sizeof(x.took))
	s, err := c.Exchange((*[size]byte)(unsafe.Pointer(&x.took))[:], true)
	if err != nil {
		return err
	}
	slowest, failed := x.took, false
	for j := range c.Size() {
		took := *(*time.Duration)(unsafe.Pointer(unsafe.SliceData(c.Payload(j, s, 0, size))))
		slowest, failed = max(slowest, took), failed || took == 0
	}
	if failed {
		x.Lost()
	} else {
		x.Note(int64(slowest))
	}
	return nil
}
