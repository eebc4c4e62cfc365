package job

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/ddp"
)

// The error of rank 0, which all get, is named once, and so is a rank's own.
func TestErrorsNameOneRank(t *testing.T) {
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		lost := errors.New("open data: no such file")
		shared := ddp.OnRankZero(ctx, c, func() error { return lost })
		if got, want := named(c, shared), "rank 0: open data: no such file"; got != want {
			return fmt.Errorf("%q, want %q", got, want)
		}
		if got, want := named(c, lost), fmt.Sprintf("rank %d: %v", c.Rank(), lost); got != want {
			return fmt.Errorf("%q, want %q", got, want)
		}
		return nil
	})
}
