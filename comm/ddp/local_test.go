package ddp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"gompi/comm"
	"gompi/comm/commtest"
)

// localReference makes the steps of all ranks in a plain loop: each rank its own, but the first
// after, which are all ranks', and parameters are averaged after every few.
func localReference(size, steps, every, after int, lengths []int) [][]*Param {
	ranks := make([][]*Param, size)
	for r := range ranks {
		ranks[r] = testParams(0, lengths...)
	}
	for s := range steps {
		for r, params := range ranks {
			for i, p := range params {
				for j := range p.Data {
					if s < after {
						p.Data[j] -= average(size, s, i, j)
					} else {
						p.Data[j] -= gradient(r, s, i, j)
					}
				}
			}
		}
		if alone := s + 1 - after; alone > 0 && alone%every == 0 {
			averageReference(ranks)
		}
	}
	return ranks
}

func averageReference(ranks [][]*Param) {
	for i, p := range ranks[0] {
		for j := range p.Data {
			var sum float32
			for _, params := range ranks {
				sum += params[i].Data[j]
			}
			for _, params := range ranks {
				params[i].Data[j] = sum / float32(len(ranks))
			}
		}
	}
}

func TestRanksTrainAloneBetweenAveragesOfParameters(t *testing.T) {
	lengths := []int{3, 0, 100, 7}
	for _, opts := range []Options{{LocalSteps: 1}, {LocalSteps: 3},
		{LocalSteps: 2, LocalAfter: 2, FirstBucketBytes: 4, BucketBytes: 4}} {
		for _, size := range []int{1, 2, 4} {
			const steps = 7
			want := localReference(size, steps, opts.LocalSteps, opts.LocalAfter, lengths)
			commtest.Run(t, size, func(ctx context.Context, c *comm.Comm) error {
				params := testParams(c.Rank(), lengths...)
				d, err := New(ctx, c, params, opts)
				if err != nil {
					return err
				}
				for s := range steps {
					if err := step(ctx, d, params, c.Rank(), s); err != nil {
						return err
					}
					for _, p := range params {
						for j, g := range p.Grad {
							p.Data[j] -= g
						}
					}
					if d.AverageDue() {
						if err := d.AverageParams(ctx); err != nil {
							return err
						}
					}
				}
				for i, p := range params {
					if !slices.Equal(p.Data, want[c.Rank()][i].Data) {
						return fmt.Errorf("%+v: %s is %v, want %v", opts, p.Name, p.Data, want[c.Rank()][i].Data)
					}
				}
				if got := d.Stats().Bytes; got != int64(opts.LocalAfter*4*110) {
					return fmt.Errorf("%d bytes of gradients were averaged in %d steps", got, opts.LocalAfter)
				}
				if err := d.AverageParams(ctx); err != nil {
					return err
				}
				if err := d.CheckReplicas(ctx); err != nil {
					return err
				}
				return d.Close(ctx)
			})
		}
	}
}

// Between two averages a rank waits for no other, with FindUnused too, and Used reports its own
// parameters: rank 0 makes its steps before rank 1 begins with them.
func TestTrainingAloneWaitsForNoOtherRank(t *testing.T) {
	first := make(chan struct{})
	done := sync.OnceFunc(func() { close(first) })
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		params := testParams(0, 2, 2)
		d, err := New(ctx, c, params, Options{LocalSteps: 3, LocalAfter: 1, FindUnused: true})
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			defer done()
		}
		for s := range 4 {
			if s == 1 && c.Rank() == 1 {
				<-first
			}
			d.ZeroGrad()
			d.Ready(c.Rank())
			soon, cancel := context.WithTimeout(ctx, 10*time.Second)
			err := d.Finish(soon)
			cancel()
			if s == 3 && c.Rank() == 0 {
				done()
			}
			if err != nil {
				return fmt.Errorf("step %d: %w", s, err)
			}
			for i := range params {
				if want := s == 0 || i == c.Rank(); d.Used(i) != want {
					return fmt.Errorf("step %d: parameter %d is used: %v, want %v", s, i, d.Used(i), want)
				}
			}
		}
		if !d.AverageDue() {
			return errors.New("no average is due")
		}
		if err := d.AverageParams(ctx); err != nil {
			return err
		}
		return d.Close(ctx)
	})
}

// Sparse gradients stay each rank's own, too, and their tables are averaged.
func TestTablesAreAveragedLikeOtherParameters(t *testing.T) {
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		params := []*Param{{Name: "table", Data: make([]float32, 8), Row: 2}}
		d, err := New(ctx, c, params, Options{LocalSteps: 1})
		if err != nil {
			return err
		}
		d.ReadyRows(0, []int32{int32(c.Rank()), 3, 3}, []float32{1, 1, 2, 2, 4, 4})
		if err := d.Finish(ctx); err != nil {
			return err
		}
		rows, values := d.Rows(0)
		if !slices.Equal(rows, []int32{int32(c.Rank()), 3}) || !slices.Equal(values, []float32{1, 1, 6, 6}) {
			return fmt.Errorf("rows are %v, %v", rows, values)
		}
		for k, r := range rows {
			copy(params[0].Data[r*2:][:2], values[2*k:])
		}
		if !d.AverageDue() {
			return fmt.Errorf("no average is due")
		}
		if err := d.AverageParams(ctx); err != nil {
			return err
		}
		if want := []float32{0.5, 0.5, 0.5, 0.5, 0, 0, 6, 6}; !slices.Equal(params[0].Data, want) {
			return fmt.Errorf("table is %v, want %v", params[0].Data, want)
		}
		return d.Close(ctx)
	})
}
