package ddp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"gompi/comm/ddp/internal/trace"
	"gompi/internal/timeline"
)

// traceSteps is the number of steps in a tracer, the last ones.
const traceSteps = 1000

// A tracer records when a step's parts begin and end. Methods of a nil tracer do nothing.
type tracer struct {
	epoch  time.Time    // origin of all times
	waiter *runner      // waits for buckets to record their ends
	steps  []trace.Step // a ring of the last steps
	oldest int          // index of the first
	now    trace.Step   // the present step
	begun  bool
}

func newTracer(params int) *tracer {
	return &tracer{epoch: time.Now(), waiter: newRunner(params)}
}

func (t *tracer) close() {
	if t != nil {
		t.waiter.close()
	}
}

func (t *tracer) since() time.Duration { return time.Since(t.epoch) }

// A followedReducer records its start and its end.
type followedReducer struct {
	reducer
	task  *task // waits
	t     *tracer
	index int // of the bucket
}

// follow returns r or, if t is not nil, a reducer that also records r's times.
func (t *tracer) follow(r reducer, index int) reducer {
	if t == nil {
		return r
	}
	f := &followedReducer{reducer: r, t: t, index: index}
	f.task = t.waiter.newTask(func(ctx context.Context) error {
		err := r.wait(ctx)
		t.now.Buckets[index].Done = t.since()
		return err
	})
	return f
}

func (f *followedReducer) start() {
	f.t.begin()
	f.t.now.Buckets[f.index].Start = f.t.since()
	f.reducer.start()
	f.task.start()
}

func (f *followedReducer) wait(ctx context.Context) error { return f.task.wait(ctx) }

// resize sets the number of buckets, between two steps.
func (t *tracer) resize(buckets int) {
	if t != nil {
		t.now.Buckets = make([]trace.Bucket, buckets)
	}
}

// begin records the begin of a step, once.
func (t *tracer) begin() {
	if t != nil && !t.begun {
		t.begun, t.now.Begin = true, t.since()
	}
}

func (t *tracer) finish() {
	if t != nil {
		t.begin()
		t.now.Finish = t.since()
	}
}

// end keeps the times of the step, in place of the oldest step if there are traceSteps.
func (t *tracer) end(d *DDP) {
	if t == nil {
		return
	}
	t.begun, t.now.End, t.now.Number = false, t.since(), d.stats.Steps
	for i, b := range d.buckets {
		t.now.Buckets[i].Bytes, t.now.Buckets[i].Params = b.bytes(), b.names
	}
	var reuse trace.Step
	if len(t.steps) < traceSteps {
		t.steps = append(t.steps, t.now)
	} else {
		t.steps[t.oldest], reuse = t.now, t.steps[t.oldest]
		t.oldest = (t.oldest + 1) % traceSteps
	}
	t.now = trace.Step{Buckets: slices.Grow(reuse.Buckets[:0], len(d.buckets))[:len(d.buckets)], Spans: reuse.Spans[:0]}
	clear(t.now.Buckets)
}

// Span records, with Trace, an activity of the program with this name, such as reading data, until
// end is called. Spans are nested or disjoint.
//
//	end := d.Span("evaluate")
//	...
//	end()
func (d *DDP) Span(name string) (end func()) {
	t := d.trace
	if t == nil {
		return func() {}
	}
	begin := t.since()
	return func() { t.now.Spans = append(t.now.Spans, trace.Span{Name: name, Begin: begin, End: t.since()}) }
}

// WriteTrace writes Trace's times, of all ranks, to rank 0's w, for chrome://tracing or
// ui.perfetto.dev. It is collective; the other ranks' w is not used. All ranks get the same error.
//
// Each rank is a process of three threads. "steps" shows each step: the computation before Finish,
// and the exposed communication in Finish. "communication" shows each bucket, from its turn until
// its average. "program" shows the Spans. Messages align the ranks' clocks to half of a round trip.
func (d *DDP) WriteTrace(ctx context.Context, w io.Writer) error {
	t := d.trace
	if t == nil {
		return errors.New("ddp: WriteTrace: want the option Trace")
	}
	steps := slices.Concat(t.steps[t.oldest:], t.steps[:t.oldest])
	lists, err := trace.Gather(ctx, d.c, t.since, steps, t.now.Spans)
	if err != nil {
		return fmt.Errorf("ddp: WriteTrace: %w", err)
	}
	return OnRankZero(ctx, d.c, func() error {
		if err := timeline.Write(w, lists...); err != nil {
			return fmt.Errorf("ddp: WriteTrace: %w", err)
		}
		return nil
	})
}
