package path

import "time"

const (
	// samples is the number of calls that a trial times on each path; the fastest counts.
	samples = 2
	// The first trial comes after leastCalls calls. Short calls, which take long to warm up, have
	// more calls before it, and so do calls longer than longCalls, where a trial is much of a
	// program's work. Each time a trial confirms the path, the number doubles, up to mostCalls.
	// For calls longer than 1 MiB the limit is lower, but at least fewCalls.
	leastCalls, fewCalls, mostCalls = 4, 128, 2048
	longCalls                       = 4 << 20
	// worth is the percentage of the present path's time below which the other path is chosen.
	worth = 90
	// warm is the number of bytes that calls have to move before the path reaches its full speed:
	// at first the bounce buffers are not in the caches.
	warm, mostWarming = 2 << 20, 32
)

// A Trial finds the faster of two paths at present, by timing both from time to time: a single copy
// by the kernel from process to process, or two copies through shared memory. It is the state of
// the calls of a kind and of similar length.
//
// The faster path depends on the processors and their placement, which changes in virtual
// machines. (np=2 on two processors of an AMD EPYC, through shared memory and by the kernel. Far:
// bcast of 64 KiB 11.0 and 4.7 us, of 1 MiB 116 and 42, of 16 MiB 1.7 and 1.0 ms; allgather of 64
// KiB 16.0 and 7.8 us, of 1 MiB 175 and 109. Near: bcast of 1 MiB 24 and 43 us, allgather 58 and
// 97.)
type Trial struct {
	Cross   bool // the present path goes through the kernel
	begun   bool
	calls   int  // since the last trial
	after   int  // the next trial comes after this many calls
	least   int  // value of after, after a change
	confirm bool // the last trial found the other path faster: a second has to confirm
	warming int  // calls of a trial that take the other path before any is timed
	times   Times
}

// Times are nanoseconds: of the present path, and of the other.
type Times [2]int64

// A Turn is the role of a call in a trial.
type Turn int8

const (
	TimePresent Turn = iota // time the present path
	TimeOther               // time the other path
	Untimed
	WarmUp   // take the other path
	Conclude // exchange the times, and decide
)

// Begin sets the first path of calls of this many bytes, and the number of calls before the first
// trial, unless calls have been counted.
func (t *Trial) Begin(cross bool, bytes int) {
	if t.begun {
		return
	}
	*t = Trial{begun: true, Cross: cross, warming: min(warm/max(bytes, 1), mostWarming)}
	if t.least = max(leastCalls, 4*t.warming); bytes > longCalls {
		t.least = 16 * leastCalls
	}
	t.after = t.least
}

// Next counts a call, and returns its Turn.
func (t *Trial) Next() Turn {
	t.calls++
	switch i := t.calls - t.after; {
	case i <= 0:
		return Untimed
	case i <= samples:
		return TimePresent
	case i <= samples+t.warming:
		return WarmUp
	case i <= samples+t.warming+samples:
		return TimeOther
	}
	return Conclude
}

// Crosses reports whether a call goes through the kernel, by its Turn.
func (t *Trial) Crosses(p Turn) (cross bool) { return t.Cross != (p == WarmUp || p == TimeOther) }

// Note notes the duration of a TimePresent or TimeOther call. Failed calls are not noted.
func (t *Trial) Note(p Turn, took time.Duration) {
	if ns := int64(took); t.times[p] == 0 || ns < t.times[p] {
		t.times[p] = max(ns, 1)
	}
}

// Times returns the times noted in this trial.
func (t *Trial) Times() Times { return t.times }

// Decide ends a trial of calls of this many bytes, in which slowest are the times of the slowest
// members. The other path is taken if two trials in a row find it faster, and never without
// a noted time.
func (t *Trial) Decide(slowest Times, bytes int) {
	t.calls, t.times = 0, Times{}
	faster := slowest[TimeOther] > 0 && slowest[TimeOther]*100 < slowest[TimePresent]*worth
	switch {
	case faster && !t.confirm:
		t.confirm, t.after = true, 0
		return
	case faster:
		t.Cross, t.after = !t.Cross, t.least
	default:
		t.after = min(2*max(t.after, t.least), max(mostCalls<<20/max(bytes, 1<<20), fewCalls))
	}
	t.confirm = false
}
