package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
)

func TestRanksTogetherFindPi(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		commtest.Run(t, n, func(ctx context.Context, c *comm.Comm) error {
			var out bytes.Buffer
			if err := pi(ctx, c, 100_000, &out); err != nil {
				return err
			}
			if want := c.Rank() == 0; strings.HasPrefix(out.String(), "pi is 3.1415926") != want {
				return fmt.Errorf("rank %d printed %q", c.Rank(), out.String())
			}
			return nil
		})
	}
}

func TestWrongResultIsAnError(t *testing.T) {
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		err := pi(ctx, c, 10, io.Discard) // far too few strips
		if wrong := err != nil; wrong != (c.Rank() == 0) {
			return fmt.Errorf("rank %d: %v", c.Rank(), err)
		}
		return nil
	})
}
