package seg

import (
	"time"

	"golang.org/x/sys/unix"
)

// Two processes of a host read the same clock if the two readings of a moment are close together. A
// process that starts on a busy machine may lose its processor between them, and then reads again.
const (
	closeReadings = 5 * time.Microsecond
	mostReadings  = 20
)

func moment() (started time.Time, origin int64) {
	least := time.Duration(-1)
	for range mostReadings {
		before := time.Now()
		at := monotonic()
		gap := time.Since(before)
		if least < 0 || gap < least {
			least, started, origin = gap, before, at
		}
		if gap < closeReadings {
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
