package seg

import "time"

// One moment, by Go's clock, which is fast to read, and by the host's monotonic clock.
var started, origin = moment()

// Now returns nanoseconds of the host's monotonic clock, which all processes of the host share.
// Other systems than Linux have no segment; there Now reads a clock of this process.
func Now() int64 { return origin + int64(time.Since(started)) }

// Unix converts a time of Now to nanoseconds since 1970. Unix keeps order and distance, even if the
// host's clock is set.
func Unix(now int64) int64 { return started.UnixNano() + now - origin }
