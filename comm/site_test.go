package comm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
)

// Errors that the program is to blame for say where it made the call.
func TestErrorsOfTheProgramNameTheCallersLine(t *testing.T) {
	commtest.Ranks(t.Context(), 2, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
		x := []int64{1}
		argument := comm.Bcast(ctx, c, 2, x)
		mismatch := comm.Reduce(ctx, c, 0, x, make([]int64, 1), []comm.Op{comm.Sum, comm.Max}[c.Rank()])
		if mismatch == nil {
			mismatch = comm.Barrier(ctx, c)
		}
		for want, err := range map[error]error{comm.ErrArgument: argument, comm.ErrMismatch: mismatch} {
			var e *comm.Error
			if !errors.Is(err, want) || !errors.As(err, &e) || !strings.HasPrefix(e.Site, "comm/site_test.go:") ||
				!strings.Contains(err.Error(), fmt.Sprintf("%s at %s: rank", e.Op, e.Site)) {
				t.Errorf("rank %d: %v: want %v at a line of site_test.go", c.Rank(), err, want)
			}
		}
		return nil
	})
}
