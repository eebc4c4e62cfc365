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

func TestUnanswered(t *testing.T) {
	for _, tc := range []struct {
		retransmits, probes uint8
		sinceAck            uint32
		want                bool
	}{
		{0, 0, 100_000, false}, // idle: keepalive's business
		{0, 1, 100_000, false}, // one probe on its way to a rank that computes
		{1, 0, 40_000, false},  // one lost packet
		{5, 0, 10_000, false},  // not for long
		{2, 0, silentMillis, true},
		{0, 2, silentMillis, true},
	} {
		if got := unanswered(tc.retransmits, tc.probes, tc.sinceAck); got != tc.want {
			t.Errorf("unanswered(%d, %d, %d) = %v, want %v", tc.retransmits, tc.probes, tc.sinceAck, got, tc.want)
		}
	}
}
