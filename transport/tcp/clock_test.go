package tcp

import (
	"testing"
	"time"
)

func TestClockDoesNotCountTimeWithoutPolls(t *testing.T) {
	c := clock{epoch: time.Now().Add(-1000 * time.Second)} // the last tick was long ago
	c.tick()
	if c.now != maxGap {
		t.Errorf("an absence counts for %d ns, want %d", c.now, maxGap)
	}
	c.epoch = c.epoch.Add(-5 * time.Second)
	c.parked = true
	before := c.now
	c.tick()
	if d := c.now - before; d < 5*maxGap {
		t.Errorf("sleep counts for %d ns, want all %d", d, 5*maxGap)
	}
}
