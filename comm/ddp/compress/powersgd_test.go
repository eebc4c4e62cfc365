package compress

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
)

// lowRank makes x, of rows and cols, the sum of rank products of a column that all ranks share and
// a row of this rank's own: so the average is of that rank.
func lowRank(x []float32, rows, cols, rank, comm int) {
	shared, own := rand.New(rand.NewPCG(7, 7)), rand.New(rand.NewPCG(8, uint64(comm)))
	clear(x)
	for range rank {
		u, v := make([]float32, rows), make([]float32, cols)
		for i := range u {
			u[i] = float32(shared.NormFloat64())
		}
		for j := range v {
			v[j] = float32(own.NormFloat64())
		}
		for i := range rows {
			addScaled(x[i*cols:][:cols], v, u[i])
		}
	}
}

func TestPowerSGDIsExactForMatricesOfItsRank(t *testing.T) {
	const ranks, rows, cols = 3, 40, 60
	for rank := 1; rank <= 5; rank++ {
		for _, offered := range []int{rank, rank + 1} { // a column that nothing is left for does no harm
			commtest.Run(t, ranks, func(ctx context.Context, c *comm.Comm) error {
				h, b := powersgd(t, PowerSGDOptions{Rank: offered}), newBucket([]int{rows, 4, 15})
				want, x := make([]float64, rows*cols), make([]float32, rows*cols)
				for r := range ranks {
					lowRank(x, rows, cols, rank, r)
					for i, v := range x {
						want[i] += float64(v) / ranks
					}
				}
				for b.Step = range 3 {
					lowRank(b.Grads, rows, cols, rank, c.Rank())
					if b.Step > 0 {
						clear(h.(*powerSGD).states["p0"].errors) // each rank's own part remains there
					}
					if err := h.Average(ctx, c, b); err != nil {
						return err
					}
					for i, got := range b.Grads {
						if !(math.Abs(float64(got)-want[i]) < 1e-4) {
							return fmt.Errorf("rank %d of %d, step %d: number %d is %v, want %v", rank, offered, b.Step,
								i, got, want[i])
						}
					}
				}
				return nil
			})
		}
	}
}

func TestPowerSGDSendsWhatIsSmallAsItIs(t *testing.T) {
	commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error {
		// 12*12 numbers are no more than 2*3*(12+12).
		h, b := powersgd(t, PowerSGDOptions{Rank: 3}),
			newBucket(nil, []int{300}, []int{12, 12}, []int{12, 13}, []int{12, 3, 4})
		for b.Step = range 2 {
			random(b.Grads, c.Rank(), b.Step)
			want := newBucket(nil, []int{300}, []int{12, 12}, []int{12, 13}, []int{12, 3, 4})
			copy(want.Grads, b.Grads)
			if err := comm.Allreduce(ctx, c, want.Grads, want.Grads, comm.Avg); err != nil {
				return err
			}
			if err := h.Average(ctx, c, b); err != nil {
				return err
			}
			for i, p := range b.Params {
				worst := 0.0
				for j, v := range p.Grad {
					worst = max(worst, math.Abs(float64(v-want.Params[i].Grad[j])))
				}
				if exact := worst < 1e-6; exact != (i != 3) {
					return fmt.Errorf("step %d: %s differs by %g from the average", b.Step, p.Name, worst)
				}
			}
		}
		return nil
	})
}

func TestPowerSGDBeginsAtItsStep(t *testing.T) {
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		h, b := powersgd(t, PowerSGDOptions{Rank: 1, StartStep: 2}), newBucket([]int{30, 30})
		for b.Step = range 4 {
			random(b.Grads, c.Rank(), b.Step)
			want := slices.Clone(b.Grads)
			if err := comm.Allreduce(ctx, c, want, want, comm.Avg); err != nil {
				return err
			}
			if err := h.Average(ctx, c, b); err != nil {
				return err
			}
			if plain := slices.Equal(b.Grads, want); plain != (b.Step < 2) {
				return fmt.Errorf("step %d: plain averages: %v", b.Step, plain)
			}
		}
		return nil
	})
}

// As long as the gradient is the same, warm start makes each step a step of the power iteration:
// its distance to the best approximation shrinks. Without errors, so that the gradient stays the
// same.
func TestWarmStartFindsTheLargestSingularVectors(t *testing.T) {
	const rows, cols = 30, 40
	x := make([]float32, rows*cols)
	lowRank(x, rows, cols, 1, 0)
	noise := make([]float32, rows*cols)
	random(noise, 0, 0)
	addScaled(x, noise, 0.3)
	commtest.Run(t, 1, func(ctx context.Context, c *comm.Comm) error {
		h, b := powersgd(t, PowerSGDOptions{Rank: 1}), newBucket([]int{rows, cols})
		var lacks []float64
		for b.Step = range 6 {
			copy(b.Grads, x)
			if b.Step > 0 {
				clear(h.(*powerSGD).states["p0"].errors)
			}
			if err := h.Average(ctx, c, b); err != nil {
				return err
			}
			lacks = append(lacks, norm(h.(*powerSGD).states["p0"].errors))
		}
		if first, last := lacks[0], lacks[5]; !(last < first) || lacks[4]-last > 1e-4*last {
			return fmt.Errorf("the approximations lack %v: want less and less, up to a limit", lacks)
		}
		return nil
	})
}

// A gradient that is zero for some steps, of a layer that is frozen, leaves no Q to begin with.
func TestPowerSGDContinuesAfterGradientsOfZero(t *testing.T) {
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		h, b := powersgd(t, PowerSGDOptions{Rank: 2}), newBucket([]int{30, 40})
		for b.Step = range 6 {
			if clear(b.Grads); b.Step > 2 {
				lowRank(b.Grads, 30, 40, 2, 0)
			}
			want := slices.Clone(b.Grads)
			if err := h.Average(ctx, c, b); err != nil {
				return err
			}
			for i, got := range b.Grads {
				if !(math.Abs(float64(got-want[i])) < 1e-4) {
					return fmt.Errorf("step %d: number %d is %v, want %v", b.Step, i, got, want[i])
				}
			}
		}
		return nil
	})
}

func TestColumnsBecomeOrthonormalOrZero(t *testing.T) {
	const n = 50
	r := rand.New(rand.NewPCG(3, 4))
	p := make([]float32, 6*n)
	for i := range p {
		p[i] = float32(r.NormFloat64())
	}
	col := func(k int) []float32 { return p[k*n:][:n] }
	clear(col(1))
	scale(col(2), 1e-15)
	copy(col(3), col(0)) // depends on the first and the third
	addScaled(col(3), col(2), 1e14)
	scale(col(5), 3e-4)
	addScaled(col(5), col(0), 1) // nearly depends on it
	orthonormalize(p, n)
	for k, want := range []float64{1, 0, 1, 0, 1, 1} {
		if got := norm(col(k)); math.Abs(got-want) > 1e-6 {
			t.Errorf("column %d is of length %g, want %g", k, got, want)
		}
		for i := range k {
			if got := dot64(col(i), col(k)); math.Abs(got) > 1e-6 {
				t.Errorf("columns %d and %d: %g, want 0", i, k, got)
			}
		}
	}
}

func TestPowerSGDTakesLargeAndSmallNumbers(t *testing.T) {
	for _, size := range []float64{1e-30, 1, 1e30} {
		commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
			h, b := powersgd(t, PowerSGDOptions{Rank: 2}), newBucket([]int{30, 40})
			for b.Step = range 3 {
				lowRank(b.Grads, 30, 40, 2, 0)
				scale(b.Grads, size)
				want := slices.Clone(b.Grads)
				if err := h.Average(ctx, c, b); err != nil {
					return err
				}
				for i, got := range b.Grads {
					if !(math.Abs(float64(got)-float64(want[i])) < 1e-4*size) {
						return fmt.Errorf("step %d: number %d is %v, want %v", b.Step, i, got, want[i])
					}
				}
			}
			return nil
		})
	}
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		h, b := powersgd(t, PowerSGDOptions{Rank: 2}), newBucket([]int{30, 40})
		for i := range b.Grads {
			b.Grads[i] = math.MaxFloat32
		}
		return wantError(h.Average(ctx, c, b), `"p0" to "p0" are too large`)
	})
}
