package boot

import (
	"sync/atomic"
	"time"
)

// late is a Boot that delays its events.
type late struct {
	Boot
	by    time.Duration
	since atomic.Int64 // when the first event was pending, in ns of time.Now
}

// Late returns a Boot that delays the first events of b, for tests.
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
