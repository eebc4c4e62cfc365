package seg

import (
	"time"

	"golang.org/x/sys/unix"
)

// A moment of this process, on Go's clock and on the host's.
var (
	started = time.Now()
	origin  = monotonic()
)

func monotonic() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return ts.Nano()
}

// Now returns nanoseconds of the host's monotonic clock, which all its
// processes share.
func Now() int64 { return origin + int64(time.Since(started)) }
