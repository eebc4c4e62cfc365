package seg

import (
	"time"

	"golang.org/x/sys/unix"
)

// Two processes of a host read the same clock if the two readings of a moment are close together.
// The first are not, as the code that reads is not in the processor's caches yet, nor are those of a
// process that loses its processor between them. A message comes half a microsecond after it was
// sent: if clocks differed by more, traces would have it the other way round.
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
