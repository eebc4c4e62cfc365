package boot

import (
	"sync/atomic"
	"time"
)

// late is a Boot whose news come late.
type late struct {
	Boot
	by    time.Duration
	since atomic.Int64 // when there first was some, of time.Now
}

// Late returns a Boot whose first news come that much later than those of b, for tests.
func Late(b Boot, by time.Duration) Boot { return &late{Boot: b, by: by} }

// Pending implements Boot.
func (l *late) Pending() bool {
	if !l.Boot.Pending() {
		return false
	}
	now := time.Now().UnixNano()
	l.since.CompareAndSwap(0, now)
	return now-l.since.Load() >= int64(l.by)
}

// Events implements Boot.
func (l *late) Events() []Event {
	if !l.Pending() {
		return nil
	}
	return l.Boot.Events()
}
