package ddp

import (
	"context"
	"errors"
	"fmt"

	"gompi/comm"
)

// More begins a step of a job whose ranks have unequal numbers of batches, as torch's Join does. It
// returns true while any rank has a batch. A rank without a batch makes the step without backward:
// it calls SkipRest and Finish, and steps its optimiser as the others do, so that all stay equal.
//
//	for {
//		batch, has := loader.Next()
//		more, err := d.More(ctx, has)
//		if err != nil || !more {
//			return err
//		}
//		d.ZeroGrad()
//		if has {
//			backward(batch, d.Ready)
//		} else {
//			d.SkipRest()
//		}
//		if err := d.Finish(ctx); err != nil {
//			return err
//		}
//		optimiser.Step()
//	}
//
// A rank with a batch gets its answer at once; a rank without waits for the others. All ranks call
// More in every step, or none. More costs an allreduce of one number, which overlaps backward.
// Parameters must be in host memory.
func (d *DDP) More(ctx context.Context, has bool) (bool, error) {
	if err := d.mayCall("More"); err != nil {
		return false, err
	}
	if d.joined.asked {
		return false, errors.New("ddp: More was called twice in one step: want Finish in between")
	}
	d.joined.ask(has)
	if has {
		return true, nil
	}
	if err := d.joined.wait(ctx); err != nil {
		d.note(err)
		return false, err
	}
	return d.Active() > 0, nil
}

// Active returns the number of ranks that had a batch in the last step that began with More, after
// its Finish. Finish divides by the number of all ranks: multiply by Size()/Active() for the
// average over the ranks with a batch. Likewise, divide Quantum's sum by Active().
func (d *DDP) Active() int { return int(d.joined.active[0]) }

// A joinCounter counts the ranks that have a batch.
type joinCounter struct {
	collective
	asked       bool
	own, active [1]int64
}

func newJoinCounter(c *comm.Comm) *joinCounter {
	j := &joinCounter{}
	j.op = c.AllreduceInit(comm.Of(j.own[:]), comm.Of(j.active[:]), comm.Sum)
	return j
}

func (j *joinCounter) ask(has bool) {
	if j.own[0] = 0; has {
		j.own[0] = 1
	}
	j.asked = true
	j.start()
}

func (j *joinCounter) wait(ctx context.Context) error {
	if !j.asked {
		return nil
	}
	if err := j.collective.wait(ctx); err != nil {
		return fmt.Errorf("ddp: More: %w", err)
	}
	j.asked = false
	return nil
}
