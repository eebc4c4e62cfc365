package ddp

import (
	"context"
	"slices"
	"time"
)

// traceSteps is how many steps a tracer keeps, the last ones.
const traceSteps = 1000

// A tracer notes when a step's parts begin and end. Methods of a nil one do nothing.
type tracer struct {
	epoch  time.Time   // times are since then
	waiter *runner     // learns when buckets are done
	steps  []stepTimes // the last ones,
	oldest int         // of which this is the first
	now    stepTimes   // of the step under way
}

// stepTimes are those of one step.
type stepTimes struct {
	step               int
	begun              bool
	begin, finish, end time.Duration // ZeroGrad and Finish were called, Finish returned
	buckets            []bucketTimes
	spans              []spanTimes // of the program
}

// bucketTimes are when the average of a bucket was started and was done.
type bucketTimes struct {
	start, done time.Duration
	bytes       int
	params      string
}

type spanTimes struct {
	name       string
	begin, end time.Duration
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

// A followedReducer notes when it is started and when it is done.
type followedReducer struct {
	reducer
	task  *task // waits
	t     *tracer
	index int // of the bucket
}

// follow returns r, or what notes its times, too.
func (t *tracer) follow(r reducer, index int) reducer {
	if t == nil {
		return r
	}
	f := &followedReducer{reducer: r, t: t, index: index}
	f.task = t.waiter.newTask(func(ctx context.Context) error {
		err := r.wait(ctx)
		t.now.buckets[index].done = t.since()
		return err
	})
	return f
}

func (f *followedReducer) start() {
	f.t.begin()
	f.t.now.buckets[f.index].start = f.t.since()
	f.reducer.start()
	f.task.start()
}

func (f *followedReducer) wait(ctx context.Context) error { return f.task.wait(ctx) }

// resize is called when there are so many new buckets, between two steps.
func (t *tracer) resize(buckets int) {
	if t != nil {
		t.now.buckets = make([]bucketTimes, buckets)
	}
}

// begin notes that a step begins, unless it has.
func (t *tracer) begin() {
	if t != nil && !t.now.begun {
		t.now.begun, t.now.begin = true, t.since()
	}
}

func (t *tracer) finish() {
	if t != nil {
		t.begin()
		t.now.finish = t.since()
	}
}

// end keeps the times of the step, in place of the oldest if there are many.
func (t *tracer) end(d *DDP) {
	if t == nil {
		return
	}
	t.now.end, t.now.step = t.since(), d.stats.Steps
	for i, b := range d.buckets {
		t.now.buckets[i].bytes, t.now.buckets[i].params = b.bytes(), b.names
	}
	var reuse stepTimes
	if len(t.steps) < traceSteps {
		t.steps = append(t.steps, t.now)
	} else {
		t.steps[t.oldest], reuse = t.now, t.steps[t.oldest]
		t.oldest = (t.oldest + 1) % traceSteps
	}
	t.now = stepTimes{buckets: slices.Grow(reuse.buckets[:0], len(d.buckets))[:len(d.buckets)], spans: reuse.spans[:0]}
	clear(t.now.buckets)
}

// Span notes, with Trace, that the program does something of this name, such as reading data, until
// it calls end. Spans lie inside each other, or apart.
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
	return func() { t.now.spans = append(t.now.spans, spanTimes{name, begin, t.since()}) }
}
