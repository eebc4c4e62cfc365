package trace

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gompi/comm"
)

// Steps is the number of steps in a Recorder, the last ones.
const Steps = 1000

// A Recorder keeps the times of a rank's steps. Methods of a nil Recorder do nothing.
type Recorder struct {
	epoch  time.Time // origin of all times
	steps  []step    // a ring of the last steps
	oldest int       // index of the first
	now    step      // the present step
	begun  bool
}

// NewRecorder returns a Recorder without steps.
func NewRecorder() *Recorder { return &Recorder{epoch: time.Now()} }

func (r *Recorder) clock() time.Duration { return time.Since(r.epoch) }

// Resize sets the number of buckets, between two steps.
func (r *Recorder) Resize(buckets int) {
	if r != nil {
		r.now.buckets = make([]bucket, buckets)
	}
}

// Begin records the begin of a step, once.
func (r *Recorder) Begin() {
	if r != nil && !r.begun {
		r.begun, r.now.begin = true, r.clock()
	}
}

// Start records that a bucket's average starts, and Done its end, which another goroutine may call.
func (r *Recorder) Start(bucket int) {
	r.Begin()
	r.now.buckets[bucket].start = r.clock()
}

func (r *Recorder) Done(bucket int) { r.now.buckets[bucket].done = r.clock() }

// Finish records the end of a step's computation.
func (r *Recorder) Finish() {
	if r != nil {
		r.Begin()
		r.now.finish = r.clock()
	}
}

// End keeps the times of the step, in place of the oldest step if there are Steps.
func (r *Recorder) End(number int, describe func(bucket int) (bytes int, params string)) {
	if r == nil {
		return
	}
	r.begun, r.now.end, r.now.number = false, r.clock(), number
	for i := range r.now.buckets {
		r.now.buckets[i].bytes, r.now.buckets[i].params = describe(i)
	}
	var reuse step
	if len(r.steps) < Steps {
		r.steps = append(r.steps, r.now)
	} else {
		r.steps[r.oldest], reuse = r.now, r.steps[r.oldest]
		r.oldest = (r.oldest + 1) % Steps
	}
	n := len(r.now.buckets)
	r.now = step{buckets: slices.Grow(reuse.buckets[:0], n)[:n], spans: reuse.spans[:0]}
	clear(r.now.buckets)
}

// Span records an activity of the program until end is called.
func (r *Recorder) Span(name string) (end func()) {
	if r == nil {
		return func() {}
	}
	begin := r.clock()
	return func() { r.now.spans = append(r.now.spans, span{name: name, begin: begin, end: r.clock()}) }
}

// Gather returns, on rank 0, the events of each rank, for timeline.Write. It is collective.
// Messages align the ranks' clocks.
func (r *Recorder) Gather(ctx context.Context, c *comm.Comm) ([][]byte, error) {
	shift, err := clockShift(ctx, c, r.clock)
	if err != nil {
		return nil, err
	}
	l := &eventList{rank: c.Rank(), shift: shift}
	l.Process(c.Rank(), fmt.Sprintf("rank %d on %s", c.Rank(), c.Host(c.Rank())))
	for thread, name := range threads {
		l.Thread(c.Rank(), thread, name)
	}
	l.steps(r.steps[r.oldest:])
	l.steps(r.steps[:r.oldest])
	l.spans(r.now.spans)
	own, err := l.JSON()
	if err != nil {
		return nil, err
	}
	return gatherBytes(ctx, c, own)
}
