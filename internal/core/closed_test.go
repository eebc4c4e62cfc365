package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gompi/comm"
)

// The operations that wait for a rank which has closed the communicator, though not its
// last, with what they fail with.
var towardsClosed = []struct {
	name string
	call func(ctx context.Context, d *comm.Comm) error
	want error
}{
	{"ssend", func(ctx context.Context, d *comm.Comm) error { return comm.Ssend(ctx, d, 1, 0, []int{1}) },
		comm.ErrLeft},
	{"long send", func(ctx context.Context, d *comm.Comm) error { return comm.Send(ctx, d, 1, 0, make([]byte, 1<<20)) },
		comm.ErrLeft},
	{"recv", func(ctx context.Context, d *comm.Comm) error { return second(comm.Recv(ctx, d, 1, 0, []int{1})) },
		comm.ErrLeft},
	{"recv any", func(ctx context.Context, d *comm.Comm) error {
		return second(comm.Recv(ctx, d, comm.AnySource, 0, []int{1}))
	}, comm.ErrLeft},
	{"probe", func(ctx context.Context, d *comm.Comm) error { return second(d.Probe(ctx, 1, 0)) }, comm.ErrLeft},
	{"irecv and test", func(ctx context.Context, d *comm.Comm) error {
		r := comm.Irecv(d, 1, 0, []int{1})
		for {
			if _, done, err := r.Test(); done {
				return err
			}
			if err := context.Cause(ctx); err != nil {
				return err
			}
			time.Sleep(50 * time.Microsecond) // what the program does in between
		}
	}, comm.ErrLeft},
	// whose sender closed d, or supplied it just before
	{"matched recv", func(ctx context.Context, d *comm.Comm) error {
		err := second(comm.Recv(ctx, d, 1, 5, make([]byte, 1<<20)))
		if err == nil {
			err = second(comm.Recv(ctx, d, 1, 5, make([]byte, 1<<20)))
		}
		return err
	}, comm.ErrLeft},
	{"barrier", func(ctx context.Context, d *comm.Comm) error { return d.Barrier(ctx) }, comm.ErrRevoked},
	{"long bcast", func(ctx context.Context, d *comm.Comm) error { return comm.Bcast(ctx, d, 0, make([]byte, 1<<20)) },
		comm.ErrRevoked},
}

// closedElsewhere makes all these calls on rank 0, each on a communicator of its own, which
// the others have closed before, or close while it waits. The world continues.
func closedElsewhere(before bool) rankFunc {
	return func(ctx context.Context, c *comm.Comm) error {
		on := make([]*comm.Comm, len(towardsClosed))
		for i := range on {
			d, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			on[i] = d
		}
		errs := make([]error, len(on)+1)
		if c.Rank() == 0 {
			if before {
				errs[len(on)] = c.Barrier(ctx)
			}
			callAll(ctx, on, errs)
		} else if !before {
			short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			defer cancel()
			comm.Recv(short, c, 0, 0, []int{}) // until rank 0 has asked
		}
		for i, d := range on {
			if c.Rank() > 0 {
				comm.Isend(d, 0, 5, make([]byte, 1<<20)) // announced, and lost with d
			}
			errs[i] = errors.Join(errs[i], d.Close(ctx))
		}
		if c.Rank() > 0 && before {
			errs[len(on)] = c.Barrier(ctx)
		}
		return errors.Join(append(errs, c.Barrier(ctx))...)
	}
}

func callAll(ctx context.Context, on []*comm.Comm, errs []error) {
	ctx, cancel := context.WithTimeoutCause(ctx, testTimeout, fmt.Errorf("waited for %v", testTimeout))
	defer cancel()
	var all sync.WaitGroup
	for i, o := range towardsClosed {
		all.Go(func() {
			if err := o.call(ctx, on[i]); !errors.Is(err, o.want) || !strings.Contains(err.Error(), "has left") {
				errs[i] = fmt.Errorf("%s: got %v, want %v", o.name, err, o.want)
			}
		})
	}
	all.Wait()
}

func TestOperationsTowardsARankThatHasClosedTheCommFail(t *testing.T) {
	for _, p := range []int{2, 3} {
		for _, before := range []bool{true, false} {
			inBubble(t, p, closedElsewhere(before))
			if err := errors.Join(overTCP(t, p, closedElsewhere(before))...); err != nil {
				t.Errorf("%d ranks over TCP, closed before: %v: %v", p, before, err)
			}
		}
	}
}
