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

func TestEveryRankSaysWhoItIs(t *testing.T) {
	for _, n := range []int{1, 4} {
		commtest.Run(t, n, func(ctx context.Context, c *comm.Comm) error {
			var out bytes.Buffer
			if err := hello(ctx, c, &out); err != nil {
				return err
			}
			want := fmt.Sprintf("hello from rank %d of %d on ", c.Rank(), n)
			if got := out.String(); !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 1 {
				return fmt.Errorf("printed %q, want one line that begins %q", got, want)
			}
			return nil
		})
	}
}
