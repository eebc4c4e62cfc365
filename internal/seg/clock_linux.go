package seg

import (
	"time"

	"golang.org/x/sys/unix"
)

// Two processes of a host agree on the time if each takes its two readings of a moment close
// together. The first readings are not close, since the code is not in the processor's caches yet,
// nor are the readings of a process that loses its processor between them. A message arrives half a
// microsecond after it was sent: with a larger difference of clocks, traces would show the arrival
// first.
const (
	fewestReadings = 3
	closeReadings  = time.Microsecond
	mostReadings   = 20
)

func moment() (started time.Time, origin int64) {
	least := time.Duration(-1)
	for n := 1; n <= mostReadings; n++ {
		before := time.Now()
		at := monotonic()
		gap := time.Since(before)
		if least < 0 || gap < least {
			least, started, origin = gap, before, at-int64(gap/2)
		}
		if n >= fewestReadings && least < closeReadings {
			break
		}
	}
	return started, origin
}

func monotonic() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return ts.Nano()
}
