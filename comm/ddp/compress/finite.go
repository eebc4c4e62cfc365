package compress

import (
	"context"
	"fmt"
	"math"

	"gompi/comm"
	"gompi/comm/ddp"
)

// finite reports whether v is neither NaN nor infinite.
func finite(v float32) bool { return math.Float32bits(v)&0x7f80_0000 != 0x7f80_0000 }

func allFinite(x []float32) bool {
	for _, v := range x {
		if !finite(v) {
			return false
		}
	}
	return true
}

// notFinite is the error for a parameter's gradient that would stay in the Hook's memory forever.
func notFinite(rank int, name string) error {
	return fmt.Errorf("rank %d: the gradient of %q is not finite: want finite numbers", rank, name)
}

// findNotFinite returns the same error on all ranks. It names the lowest rank with gradients that
// are not finite. All ranks call it.
func findNotFinite(ctx context.Context, c *comm.Comm, b *ddp.Bucket) error {
	const none = math.MaxInt64
	first := []int64{none} // rank and parameter
	for i, p := range b.Params {
		if !allFinite(p.Grad) {
			first[0] = int64(c.Rank())<<32 | int64(i)
			break
		}
	}
	if err := comm.Allreduce(ctx, c, first, first, comm.Min); err != nil {
		return err
	}
	if first[0] == none {
		return fmt.Errorf("gradients of %q to %q are too large: want norms of their rows and columns that float32 holds",
			b.Params[0].Name, b.Params[len(b.Params)-1].Name)
	}
	return notFinite(int(first[0]>>32), b.Params[uint32(first[0])].Name)
}
