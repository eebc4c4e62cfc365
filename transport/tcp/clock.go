package tcp

import "time"

// maxGap is how much of a time without Poll the clock counts at most.
const maxGap = int64(time.Second)

// A clock measures the time during which this rank polled, or slept and would have been
// woken. A rank that computes for minutes between two Polls must not find all its peers
// late.
type clock struct {
	epoch  time.Time
	real   int64 // at the last tick, since epoch
	now    int64 // time that counts, in nanoseconds
	parked bool  // the rank has been asleep, and would have been woken
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
