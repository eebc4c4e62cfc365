package ddp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
)

// meanHook averages as DDP itself does.
type meanHook struct{}

func (meanHook) String() string { return "mean" }

func (meanHook) Average(ctx context.Context, c *comm.Comm, b *Bucket) error {
	return comm.Allreduce(ctx, c, b.Grads, b.Grads, comm.Avg)
}

func TestHookTakesThePlaceOfTheAverage(t *testing.T) {
	lengths := []int{3, 0, 1000, 7, 5000, 1}
	for _, opts := range []Options{{}, {FirstBucketBytes: 4, BucketBytes: 4000},
		{FirstBucketBytes: 4, BucketBytes: 4, NoOverlap: true}} {
		opts.Hook = meanHook{}
		for _, size := range []int{1, 2, 4} {
			commtest.Run(t, size, func(ctx context.Context, c *comm.Comm) error {
				return threeSteps(ctx, c, testParams(c.Rank(), lengths...), opts,
					func(int, int) []int { return []int{5, 4, 3, 2, 1, 0} })
			})
		}
	}
}

// A witness notes the calls of its Average.
type witness struct {
	meanHook
	seen []string
	keys map[*Bucket]int
}

func (h *witness) Average(ctx context.Context, c *comm.Comm, b *Bucket) error {
	text := fmt.Sprint(b.Step)
	n := 0
	for _, p := range b.Params {
		text += fmt.Sprint(" ", p.Name, p.Shape, len(p.Grad))
		if len(p.Grad) > 0 && &p.Grad[0] != &b.Grads[n] {
			return errors.New("the parts are not those of Grads")
		}
		n += len(p.Grad)
	}
	if n != len(b.Grads) {
		return fmt.Errorf("%d numbers, the parts have %d", len(b.Grads), n)
	}
	h.seen = append(h.seen, text)
	h.keys[b]++
	return h.meanHook.Average(ctx, c, b)
}

func TestHookSeesBucketsInOrderWithNamesAndShapes(t *testing.T) {
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		h := &witness{keys: map[*Bucket]int{}}
		params := testParams(0, 6, 4, 5)
		params[0].Shape = []int{2, 3}
		d, err := New(ctx, c, params, Options{Hook: h, FirstBucketBytes: 20, BucketBytes: 80})
		if err != nil {
			return err
		}
		for s := range 2 {
			if err := step(ctx, d, params, c.Rank(), s); err != nil {
				return err
			}
		}
		want := []string{"0 p2[] 5", "0 p1[] 4 p0[2 3] 6", "1 p2[] 5", "1 p1[] 4 p0[2 3] 6"}
		if !slices.Equal(h.seen, want) || len(h.keys) != 2 {
			return fmt.Errorf("the hook saw %q of %d buckets, want %q of 2", h.seen, len(h.keys), want)
		}
		return errors.Join(d.Close(ctx), d.Close(ctx)) // the second does nothing
	})
}

// failing is a Hook that fails in step 1 on one rank, and waits for it on the others.
type failing struct {
	meanHook
	rank int
}

func (h failing) Average(ctx context.Context, c *comm.Comm, b *Bucket) error {
	if b.Step == 1 && c.Rank() == h.rank {
		return errors.New("out of bits")
	}
	return h.meanHook.Average(ctx, c, b)
}

// The rank whose hook fails gets its error and ends. The others, which wait inside theirs, learn
// of that.
func TestHookThatFailsEndsFinish(t *testing.T) {
	errs := commtest.Ranks(t.Context(), 2, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
		params := testParams(0, 6, 4)
		d, err := New(ctx, c, params, Options{Hook: failing{rank: 1}, FirstBucketBytes: 4, BucketBytes: 4})
		if err != nil {
			return err
		}
		if err := step(ctx, d, params, c.Rank(), 0); err != nil {
			return err
		}
		err = step(ctx, d, params, c.Rank(), 1)
		return errors.Join(err, closing(d.Close(ctx)))
	})
	if err := wantError(errs[1], "ddp: bucket 0: out of bits"); err != nil {
		t.Error(err)
	}
	if !errors.Is(errs[0], comm.ErrRevoked) {
		t.Errorf("rank 0: %v, want ErrRevoked", errs[0])
	}
}

// waiting is a Hook that waits for its context.
type waiting struct{ meanHook }

func (waiting) Average(ctx context.Context, _ *comm.Comm, _ *Bucket) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestEndedContextEndsTheHook(t *testing.T) {
	commtest.Run(t, 1, func(ctx context.Context, c *comm.Comm) error {
		d, err := New(ctx, c, testParams(0, 6), Options{Hook: waiting{}})
		if err != nil {
			return err
		}
		d.Ready(0)
		ended, cancel := context.WithCancelCause(ctx)
		cancel(errors.New("tired"))
		return errors.Join(wantError(d.Finish(ended), "bucket 0: tired"), d.Close(ctx))
	})
}
