// Package trace makes one file of what all ranks of a training did when, in Chrome's trace event
// format, for ui.perfetto.dev and chrome://tracing.
package trace

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"gompi/comm"
)

// A Step is the times of one step on a rank, by the rank's clock.
type Step struct {
	Number             int
	Begin, Finish, End time.Duration // ZeroGrad was called, Finish was called, Finish returned
	Buckets            []Bucket
	Spans              []Span // of the program
}

// A Bucket is when the average of one was started and was done: 0 if nothing was averaged.
type Bucket struct {
	Start, Done time.Duration
	Bytes       int
	Params      string // their names
}

// A Span is when the program did something.
type Span struct {
	Name       string
	Begin, End time.Duration
}

// Gather returns, on rank 0, the events of each rank: of these steps, in their order, and of spans
// after them. It is collective. Ranks' clocks are compared by messages.
func Gather(ctx context.Context, c *comm.Comm, clock func() time.Duration, steps []Step, after []Span) ([][]byte, error) {
	shift, err := clockShift(ctx, c, clock)
	if err != nil {
		return nil, err
	}
	l := &eventList{rank: c.Rank(), shift: shift}
	l.process(fmt.Sprintf("rank %d on %s", c.Rank(), c.Host(c.Rank())))
	l.steps(steps)
	l.spans(after)
	own, err := json.Marshal(l.events)
	if err != nil {
		return nil, err
	}
	return gatherBytes(ctx, c, own)
}

// Write writes the file of what Gather has returned on rank 0.
func Write(w io.Writer, lists [][]byte) error {
	_, err := io.WriteString(w, `{"displayTimeUnit":"ms","traceEvents":[`)
	for i, list := range lists {
		if i > 0 && err == nil {
			_, err = io.WriteString(w, ",\n")
		}
		if err == nil {
			_, err = w.Write(list[1 : len(list)-1]) // without brackets
		}
	}
	if err == nil {
		_, err = io.WriteString(w, "]}\n")
	}
	return err
}

// An event is one of Chrome's trace event format.
type event struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"` // X: complete, M: metadata
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Begin float64        `json:"ts"` // microseconds
	Dur   float64        `json:"dur"`
	Args  map[string]any `json:"args,omitempty"`
}

// The threads of a rank.
const (
	stepThread = iota
	communicationThread
	programThread
)

type eventList struct {
	rank   int
	shift  time.Duration
	events []event
}

// process names the rank and its threads.
func (l *eventList) process(name string) {
	l.meta("process_name", 0, "name", name)
	l.meta("process_sort_index", 0, "sort_index", l.rank)
	for thread, name := range []string{"steps", "communication", "program"} {
		l.meta("thread_name", thread, "name", name)
		l.meta("thread_sort_index", thread, "sort_index", thread)
	}
}

func (l *eventList) steps(steps []Step) {
	var done time.Duration // of the last bucket
	for _, s := range steps {
		l.span(stepThread, fmt.Sprintf("step %d", s.Number), s.Begin, s.End, nil)
		l.span(stepThread, "computation", s.Begin, s.Finish, nil)
		l.span(stepThread, "exposed communication", s.Finish, s.End, nil)
		for n, b := range s.Buckets {
			if b.Done == 0 {
				continue // nothing was averaged
			}
			begin := max(b.Start, done)
			done = max(begin, b.Done)
			l.span(communicationThread, fmt.Sprintf("bucket %d", n), begin, done, map[string]any{
				"step": s.Number, "bytes": b.Bytes, "parameters": b.Params, "queued us": micros(begin - b.Start)})
		}
		l.spans(s.Spans)
	}
}

func (l *eventList) meta(name string, thread int, key string, value any) {
	l.events = append(l.events, event{Name: name, Phase: "M", PID: l.rank, TID: thread, Args: map[string]any{key: value}})
}

func (l *eventList) span(thread int, name string, begin, end time.Duration, args map[string]any) {
	from, to := micros(begin+l.shift), micros(end+l.shift)
	l.events = append(l.events, event{name, "X", l.rank, thread, from, to - from, args})
}

func (l *eventList) spans(spans []Span) {
	for _, s := range spans {
		l.span(programThread, s.Name, s.Begin, s.End, nil)
	}
}

// micros returns d in microseconds, rounded down to an eighth of one. Sums of eighths are exact, in
// a viewer's float64 as in its nanoseconds. So a slice ends where its last part ends: if it ended
// a trifle before, a viewer would take neither to be inside the other.
func micros(d time.Duration) float64 { return math.Floor(float64(d)/125) / 8 }
