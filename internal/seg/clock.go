package seg

import "time"

// One moment: on Go's clock, which is fast to read, and as the host's monotonic clock had it.
var started, origin = moment()

// Now returns nanoseconds of the host's monotonic clock, which all its processes share. Other
// systems than Linux have no segment; there it is a clock of this process.
func Now() int64 { return origin + int64(time.Since(started)) }

// Unix converts a time of Now to nanoseconds since 1970. It keeps order and distance, also when
// the host's clock is set.
func Unix(now int64) int64 { return started.UnixNano() + now - origin }
