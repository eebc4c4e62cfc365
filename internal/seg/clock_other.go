//go:build !linux

package seg

import "time"

var started = time.Now()

// Now returns nanoseconds of this process's monotonic clock.
func Now() int64 { return int64(time.Since(started)) }
