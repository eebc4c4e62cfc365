package tcp

import "time"

// maxGap bounds the time that the clock counts for a period without Poll.
const maxGap = int64(time.Second)

// A clock measures the time during which this rank polled, or slept and could be woken. A rank that
// computes for minutes between two Polls must not find all its peers late.
type clock struct {
	epoch  time.Time
	real   int64 // at the last tick, since epoch
	now    int64 // counted time, in nanoseconds
	parked bool  // the rank has been asleep, and could be woken
}

func (c *clock) tick() {
	real := int64(time.Since(c.epoch))
	gap := real - c.real
	c.real = real
	if !c.parked {
		gap = min(gap, maxGap)
	}
	c.parked = false
	c.now += gap
}
