package core_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"gompi/comm"
)

func TestAllocatedMemoryIsZeroedAlignedAndFitForCollectives(t *testing.T) {
	inBubble(t, 3, func(ctx context.Context, c *comm.Comm) error {
		for _, n := range []int{0, 1, 1000, 100_000} {
			v, err := comm.Alloc[float32](ctx, c, n)
			if err != nil {
				return err
			}
			if len(v) != n || n > 0 && uintptr(unsafe.Pointer(&v[0]))%64 != 0 {
				return fmt.Errorf("%d elements: got %d at %p, want an address divisible by 64", n, len(v), v)
			}
			for i := range v {
				if v[i] != 0 {
					return fmt.Errorf("element %d of %d is %v", i, n, v[i])
				}
				v[i] = float32(c.Rank())
			}
			if err := comm.Allreduce(ctx, c, v, v, comm.Sum); err != nil {
				return err
			}
			if n > 0 && v[n-1] != 3 {
				return fmt.Errorf("sum %v, want 3", v[n-1])
			}
			if err := comm.Free(ctx, c, v); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestAbortNeverEndsAJobWithStatusZero(t *testing.T) {
	for code, want := range map[int]string{0: "status 1:", 3: "status 3:", 256: "status 1:", 257: "status 1:",
		-1: "status 255:"} {
		errs := outcomes(t, 2, func(ctx context.Context, c *comm.Comm) error {
			if c.Rank() == 0 {
				return c.Abort(code, "a test")
			}
			return comm.Barrier(ctx, c)
		})
		if errs[1] == nil || !strings.Contains(errs[1].Error(), want) {
			t.Errorf("abort with %d: %v, want %q", code, errs[1], want)
		}
	}
}
