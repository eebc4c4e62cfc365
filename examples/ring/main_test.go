package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
)

func TestTokenVisitsEveryRank(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		commtest.Run(t, n, func(ctx context.Context, c *comm.Comm) error {
			var out bytes.Buffer
			if err := ring(ctx, c, 3, &out); err != nil {
				return err
			}
			want := fmt.Sprintf("3 laps around %d ranks", n)
			if output := strings.HasPrefix(out.String(), want); output != (c.Rank() == 0) {
				return fmt.Errorf("rank %d printed %q", c.Rank(), out.String())
			}
			return nil
		})
	}
}
