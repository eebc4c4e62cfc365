package ddp

import (
	"context"
	"sync"

	"gompi/comm"
)

// A runner runs tasks on a goroutine of its own, in order.
type runner struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	work   chan *task
	over   sync.WaitGroup
}

// A task is a reducer that a runner runs.
type task struct {
	runner *runner
	run    func(ctx context.Context) error
	done   chan error
}

// newRunner returns a runner with a queue of most tasks.
func newRunner(most int) *runner {
	v := &runner{work: make(chan *task, most)}
	v.ctx, v.cancel = context.WithCancelCause(context.Background())
	v.over.Go(v.serve)
	return v
}

// serve runs tasks until close. After a failure the communicator may be broken, and ranks may have
// made different progress, so the remaining tasks fail, too.
func (v *runner) serve() {
	var failed error
	for t := range v.work {
		if failed == nil {
			failed = t.run(v.ctx)
		}
		t.done <- failed
	}
}

// close ends the context of the present task and waits for the task. A nil runner has none.
func (v *runner) close() {
	if v == nil {
		return
	}
	v.cancel(comm.ErrClosed)
	close(v.work)
	v.over.Wait()
}

func (v *runner) newTask(run func(ctx context.Context) error) *task {
	return &task{v, run, make(chan error, 1)}
}

func (t *task) start() { t.runner.work <- t } // the queue has room

// wait also ends the task's context if ctx ends first: the other ranks wait for this one.
func (t *task) wait(ctx context.Context) error {
	select {
	case err := <-t.done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-t.done: // the task ended, too, and others may follow
		return err
	default:
		t.runner.cancel(context.Cause(ctx))
		return <-t.done
	}
}

func (t *task) free(context.Context) {}
