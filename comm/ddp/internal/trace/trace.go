// Package trace records the steps of a training, and makes one file of all ranks' timelines, in
// Chrome's trace event format, for ui.perfetto.dev and chrome://tracing.
package trace

import (
	"fmt"
	"time"

	"gompi/internal/timeline"
)

// A step is the times of one step on a rank, by the rank's clock.
type step struct {
	number             int
	begin, finish, end time.Duration // calls of ZeroGrad and Finish, and Finish's return
	buckets            []bucket
	spans              []span // of the program
}

// A bucket has the times of a bucket's average: 0 if nothing was averaged.
type bucket struct {
	start, done time.Duration
	bytes       int
	params      string // their names
}

// A span is a named activity of the program.
type span struct {
	name       string
	begin, end time.Duration
}

// The threads of a rank, and their names.
const (
	stepThread = iota
	communicationThread
	programThread
)

var threads = []string{"steps", "communication", "program"}

type eventList struct {
	timeline.List
	rank  int
	shift time.Duration
	done  time.Duration // end of the last bucket
}

func (l *eventList) steps(steps []step) {
	for _, s := range steps {
		l.span(stepThread, fmt.Sprintf("step %d", s.number), s.begin, s.end, nil)
		l.span(stepThread, "computation", s.begin, s.finish, nil)
		l.span(stepThread, "exposed communication", s.finish, s.end, nil)
		for n, b := range s.buckets {
			if b.done == 0 {
				continue // nothing was averaged
			}
			begin := max(b.start, l.done)
			l.done = max(begin, b.done)
			l.span(communicationThread, fmt.Sprintf("bucket %d", n), begin, l.done, map[string]any{
				"step": s.number, "bytes": b.bytes, "parameters": b.params,
				"queued us": timeline.Micros(begin - b.start)})
		}
		l.spans(s.spans)
	}
}

func (l *eventList) span(thread int, name string, begin, end time.Duration, args map[string]any) {
	l.Span(l.rank, thread, name, begin+l.shift, end+l.shift, args)
}

func (l *eventList) spans(spans []span) {
	for _, s := range spans {
		l.span(programThread, s.name, s.begin, s.end, nil)
	}
}
