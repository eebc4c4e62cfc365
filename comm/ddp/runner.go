package ddp

import (
	"context"
	"sync"

	"gompi/comm"
)

// A runner runs tasks on a goroutine of its own, one after the other.
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

// newRunner returns one that queues up to most tasks.
func newRunner(most int) *runner {
	v := &runner{work: make(chan *task, most)}
	v.ctx, v.cancel = context.WithCancelCause(context.Background())
	v.over.Go(v.serve)
	return v
}

// serve runs tasks until close. After one has failed the communicator may be broken, and ranks
// may differ in what they have done, so nothing else is begun.
func (v *runner) serve() {
	var failed error
	for t := range v.work {
		if failed == nil {
			failed = t.run(v.ctx)
		}
		t.done <- failed
	}
}

// close waits for the task that is under way, whose context ends.
func (v *runner) close() {
	v.cancel(comm.ErrClosed)
	close(v.work)
	v.over.Wait()
}

func (v *runner) newTask(run func(ctx context.Context) error) *task {
	return &task{v, run, make(chan error, 1)}
}

func (t *task) start() { t.runner.work <- t } // has room

// wait ends the task's context, too, if ctx ends first: the other ranks count on this one.
func (t *task) wait(ctx context.Context) error {
	select {
	case err := <-t.done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-t.done: // it ended, too, and others may follow
		return err
	default:
		t.runner.cancel(context.Cause(ctx))
		return <-t.done
	}
}

func (t *task) free(context.Context) {}
