package agent

import "time"

// A turn tells processes that have had the time to do something, and have not, from those that got
// no processor for it.
type turn struct {
	begun time.Time
	used  time.Duration // what the processes had used of a processor then
}

// turnLook is how often one looks at processes that have not had their turn.
const turnLook = 20 * time.Millisecond

// missed reports whether processes have not had their turn: one is ready to run, and they have not
// used least of a processor since it began, most ago at most.
func (t *turn) missed(now time.Time, ready bool, used, least, most time.Duration) bool {
	return ready && used-t.used < least && now.Sub(t.begun) < most
}
