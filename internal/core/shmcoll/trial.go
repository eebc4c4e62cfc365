package shmcoll

import (
	"math/bits"
	"time"
	"unsafe"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/path"
)

// Members try whether calls of the same kind and similar length are faster through the kernel:
// now and then they time some calls either way, exchange the times in the next such call, and
// take the way whose slowest member was faster. All members count the same calls, and so try the
// same calls.

// trials are by kind, nil before the first call of a kind, and by length of the vector, as a
// power of two.
type trials [calls.Count]*[64]path.Trial

// A timing is of a call that a trial times.
type timing struct {
	of    *path.Trial // nil if not timed
	turn  path.Turn
	start time.Time
}

// end notes the duration of the call.
func (t *timing) end() {
	if t.of != nil {
		t.of.Note(t.turn, time.Since(t.start))
	}
}

// faster reports whether o goes through the kernel: as k says at first, then as trials have shown.
// A timing begins when all members have begun the call.
func (c *Collectives) faster(k path.KernelCopy, o *call.Call, timed *timing) (cross bool, err error) {
	bytes := c.paths.Payload(o)
	ofKind := &c.trials[o.Kind]
	if *ofKind == nil {
		*ofKind = new([64]path.Trial)
	}
	t := &(*ofKind)[bits.Len(uint(bytes))]
	if t.Begin(k.First, bytes); !k.Tries {
		return t.Cross, nil
	}
	turn := t.Next()
	switch turn {
	case path.Conclude:
		err = c.exchangeTimes(t, bytes)
	case path.TimePresent, path.TimeOther:
		if err = c.Barrier(); err == nil {
			*timed = timing{t, turn, time.Now()}
		}
	}
	return t.Crosses(turn), err
}

// exchangeTimes exchanges the times of a trial, and ends the trial.
func (c *Collectives) exchangeTimes(t *path.Trial, bytes int) error {
	mine := t.Times()
	const size = int(unsafe.Sizeof(mine))
	s, err := c.Exchange((*[size]byte)(unsafe.Pointer(&mine))[:], true)
	if err != nil {
		return err
	}
	slowest := mine
	for j := range c.Size() {
		times := (*path.Times)(unsafe.Pointer(unsafe.SliceData(c.Payload(j, s, 0, size))))
		for way := range times {
			slowest[way] = max(slowest[way], times[way])
		}
	}
	t.Decide(slowest, bytes)
	return nil
}
