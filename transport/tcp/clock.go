package tcp

import "time"

// maxGap is the most that one stretch without Poll counts for.
const maxGap = int64(time.Second)

// A clock measures the time during which this rank was listening. A rank that
// computes for minutes between two Polls must not find everybody late.
type clock struct {
	epoch  time.Time
	real   int64 // at the last tick, since epoch
	now    int64 // what counts
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
