package shmcoll

import (
	"math/bits"
	"time"
	"unsafe"

	"gompi/comm/internal/call"
	"gompi/comm/internal/path"
	"gompi/comm/internal/trial"
)

// Members try whether calls of one kind and similar length are faster through the kernel: now and
// then they time some calls either way, tell each other the times with the next such call, and go
// the way whose slowest member was faster. They count the same calls, and so try the same ones.

// trials are by kind and by length of the vector, as a power of two.
type trials [call.Exscan + 1][64]trial.Trial

// try runs o along p through the kernel, or along its Otherwise: as p.Kernel says at first, then as
// trials have shown.
func (c *Comm) try(p *path.Path, o *call.Call) error {
	bytes := c.paths.Payload(o)
	if c.trials == nil {
		c.trials = new(trials)
	}
	t := &c.trials[o.Kind][bits.Len(uint(bytes))]
	t.Begin(p.Kernel.First, bytes)
	if !p.Kernel.Tries {
		return c.goes(p, o, t.Cross)
	}
	part := t.Next()
	switch part {
	case trial.Tell:
		if err := c.exchangeTimes(t, bytes); err != nil {
			return err
		}
	case trial.Present, trial.Other:
		took, err := c.timed(p, o, t.Goes(part))
		if err == nil {
			t.Note(part, took)
		}
		return err
	}
	return c.goes(p, o, t.Goes(part))
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

// timed runs o one way or the other, and returns how long it takes from when all members have begun
// it.
func (c *Comm) timed(p *path.Path, o *call.Call, cross bool) (time.Duration, error) {
	if err := c.Barrier(); err != nil {
		return 0, err
	}
	start := time.Now()
	err := c.goes(p, o, cross)
	return time.Since(start), err
}

// exchangeTimes exchanges the times of a trial, and ends it.
func (c *Comm) exchangeTimes(t *trial.Trial, bytes int) error {
	mine := t.Times()
	const size = int(unsafe.Sizeof(mine))
	s, err := c.Exchange((*[size]byte)(unsafe.Pointer(&mine))[:], true)
	if err != nil {
		return err
	}
	slowest := mine
	for j := range c.Size() {
		times := (*trial.Times)(unsafe.Pointer(unsafe.SliceData(c.Payload(j, s, 0, size))))
		for way := range times {
			slowest[way] = max(slowest[way], times[way])
		}
	}
	t.Decide(slowest, bytes)
	return nil
}
