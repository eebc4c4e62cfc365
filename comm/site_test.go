package comm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gompi/comm"
	"gompi/comm/commtest"
)

// Errors that the program is to blame for say where it made the call.
func TestErrorsOfTheProgramNameTheCallersLine(t *testing.T) {
	commtest.Ranks(t.Context(), 2, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
		x := []int64{1}
		wantCallersLine(t, c, comm.Bcast(ctx, c, 2, x), comm.ErrArgument)
		mismatch := comm.Reduce(ctx, c, 0, x, make([]int64, 1), []comm.Op{comm.Sum, comm.Max}[c.Rank()])
		if mismatch == nil {
			mismatch = comm.Barrier(ctx, c)
		}
		wantCallersLine(t, c, mismatch, comm.ErrMismatch)
		return nil
	})
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		short, peer := []int64{1}, 1-c.Rank()
		_, err := comm.Sendrecv(ctx, c, peer, 0, []int64{1, 2}, peer, 0, short)
		wantCallersLine(t, c, err, comm.ErrTruncated)

		r := comm.Irecv(c, peer, 1, []float32{0})
		if err := comm.Send(ctx, c, peer, 1, []int32{1}); err != nil {
			return err
		}
		_, err = r.Wait(ctx)
		wantCallersLine(t, c, err, comm.ErrType)

		over, cancel := context.WithDeadline(ctx, time.Now())
		defer cancel()
		_, err = comm.Recv(over, c, peer, 2, short)
		wantCallersLine(t, c, err, context.DeadlineExceeded)

		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		if err := d.Close(ctx); err != nil {
			return err
		}
		wantCallersLine(t, c, comm.Send(ctx, d, peer, 0, short), comm.ErrClosed)
		return nil
	})
}

func wantCallersLine(t *testing.T, c *comm.Comm, err, want error) {
	t.Helper()
	var e *comm.Error
	if !errors.Is(err, want) || !errors.As(err, &e) || !strings.HasPrefix(e.Site, "comm/site_test.go:") ||
		!strings.Contains(err.Error(), fmt.Sprintf("%s at %s: rank", e.Op, e.Site)) {
		t.Errorf("rank %d: %v: want %v at a line of site_test.go", c.Rank(), err, want)
	}
}
