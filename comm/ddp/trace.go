package ddp

import (
	"context"
	"errors"
	"fmt"
	"io"

	"gompi/comm/ddp/internal/trace"
	"gompi/internal/timeline"
)

// A followedReducer records its start and its end.
type followedReducer struct {
	reducer
	task   *task // waits
	trace  *trace.Recorder
	bucket int
}

// follow returns r or, with Trace, a reducer that also records r's times.
func (d *DDP) follow(r reducer, bucket int) reducer {
	if d.trace == nil {
		return r
	}
	f := &followedReducer{reducer: r, trace: d.trace, bucket: bucket}
	f.task = d.waiter.newTask(func(ctx context.Context) error {
		err := r.wait(ctx)
		f.trace.Done(bucket)
		return err
	})
	return f
}

func (f *followedReducer) start() {
	f.trace.Start(f.bucket)
	f.reducer.start()
	f.task.start()
}

func (f *followedReducer) wait(ctx context.Context) error { return f.task.wait(ctx) }

// Span records, with Trace, an activity of the program with this name, such as reading data, until
// end is called. Spans are nested or disjoint.
//
//	end := d.Span("evaluate")
//	...
//	end()
func (d *DDP) Span(name string) (end func()) { return d.trace.Span(name) }

// WriteTrace writes Trace's times, of all ranks, to rank 0's w, for chrome://tracing or
// ui.perfetto.dev. It is collective; the other ranks' w is not used. All ranks get the same error.
//
// Each rank is a process of three threads. "steps" shows each step: the computation before Finish,
// and the exposed communication in Finish. "communication" shows each bucket, from its turn until
// its average. "program" shows the Spans. Messages align the ranks' clocks to half of a round trip.
func (d *DDP) WriteTrace(ctx context.Context, w io.Writer) error {
	if d.trace == nil {
		return errors.New("ddp: WriteTrace: want the option Trace")
	}
	lists, err := d.trace.Gather(ctx, d.c)
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
