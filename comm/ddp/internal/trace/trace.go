// Package trace makes one file of the timelines of all ranks of a training, in Chrome's trace event
// format, for ui.perfetto.dev and chrome://tracing.
package trace

import (
	"context"
	"fmt"
	"time"

	"gompi/comm"
	"gompi/internal/timeline"
)

// A Step is the times of one step on a rank, by the rank's clock.
type Step struct {
	Number             int
	Begin, Finish, End time.Duration // calls of ZeroGrad and Finish, and Finish's return
	Buckets            []Bucket
	Spans              []Span // of the program
}

// A Bucket has the times of a bucket's average: 0 if nothing was averaged.
type Bucket struct {
	Start, Done time.Duration
	Bytes       int
	Params      string // their names
}

// A Span is a named activity of the program.
type Span struct {
	Name       string
	Begin, End time.Duration
}

// Gather returns, on rank 0, the events of each rank, for timeline.Write: of these steps, in order,
// and of later spans. It is collective. Messages align the ranks' clocks.
func Gather(ctx context.Context, c *comm.Comm, clock func() time.Duration, steps []Step,
	after []Span) ([][]byte, error) {
	shift, err := clockShift(ctx, c, clock)
	if err != nil {
		return nil, err
	}
	l := &eventList{rank: c.Rank(), shift: shift}
	l.process(fmt.Sprintf("rank %d on %s", c.Rank(), c.Host(c.Rank())))
	l.steps(steps)
	l.spans(after)
	own, err := l.JSON()
	if err != nil {
		return nil, err
	}
	return gatherBytes(ctx, c, own)
}

// The threads of a rank.
const (
	stepThread = iota
	communicationThread
	programThread
)

type eventList struct {
	timeline.List
	rank  int
	shift time.Duration
}

// process names the rank and its threads.
func (l *eventList) process(name string) {
	l.Process(l.rank, name)
	for thread, name := range []string{"steps", "communication", "program"} {
		l.Thread(l.rank, thread, name)
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
				"step": s.Number, "bytes": b.Bytes, "parameters": b.Params,
				"queued us": timeline.Micros(begin - b.Start)})
		}
		l.spans(s.Spans)
	}
}

func (l *eventList) span(thread int, name string, begin, end time.Duration, args map[string]any) {
	l.Span(l.rank, thread, name, begin+l.shift, end+l.shift, args)
}

func (l *eventList) spans(spans []Span) {
	for _, s := range spans {
		l.span(programThread, s.Name, s.Begin, s.End, nil)
	}
}
