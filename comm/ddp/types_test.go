package ddp

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/internal/mem/memtest"
)

// mixed returns parameters of several types, whose values say whose they are.
func mixed(rank int) []*Tensor {
	f32, f64 := make([]float32, 5), make([]float64, 300)
	more32, bf, more64 := make([]float32, 1000), make([]comm.BFloat16, 7), make([]float64, 2)
	for i := range f64 {
		f64[i] = float64(rank) + 1e-12*float64(i) // more digits than a float32 has
	}
	for i := range more32 {
		more32[i] = float32(rank + i)
	}
	bf[3] = comm.ToBFloat16(float32(rank + 1))
	return []*Tensor{
		{Name: "f32", Data: comm.Of(f32)}, {Name: "f64", Data: comm.Of(f64)}, {Name: "more32", Data: comm.Of(more32)},
		{Name: "bf16", Data: comm.Of(bf)}, {Name: "more64", Data: comm.Of(more64)},
	}
}

// addMixed adds gradient to the gradient of parameter i, and checkMixed compares it with the
// average.
func addMixed(p *Tensor, rank, step, i int) {
	switch p.Grad.Type() {
	case comm.TypeOf[float32]():
		for j := range comm.Slice[float32](p.Grad) {
			comm.Slice[float32](p.Grad)[j] += gradient(rank, step, i, j)
		}
	case comm.TypeOf[float64]():
		for j := range comm.Slice[float64](p.Grad) {
			comm.Slice[float64](p.Grad)[j] += float64(gradient(rank, step, i, j)) * (1 + 0x1p-40)
		}
	default:
		for j := range comm.Slice[comm.BFloat16](p.Grad) {
			comm.Slice[comm.BFloat16](p.Grad)[j] = comm.ToBFloat16(gradient(rank, step, i, j))
		}
	}
}

func checkMixed(p *Tensor, size, step, i int) error {
	for j := range p.Grad.Len() {
		var got, want any
		switch p.Grad.Type() {
		case comm.TypeOf[float32]():
			got, want = comm.Slice[float32](p.Grad)[j], average(size, step, i, j)
		case comm.TypeOf[float64]():
			got, want = comm.Slice[float64](p.Grad)[j], float64(average(size, step, i, j))*(1+0x1p-40)
		default:
			got, want = comm.Slice[comm.BFloat16](p.Grad)[j], comm.ToBFloat16(average(size, step, i, j))
		}
		if got != want {
			return fmt.Errorf("step %d: %s[%d] is %v, want %v", step, p.Name, j, got, want)
		}
	}
	return nil
}

func TestTensorsOfSeveralTypesBecomeTheAverage(t *testing.T) {
	for buckets, opts := range map[int]Options{3: {}, 5: {FirstBucketBytes: 4, BucketBytes: 4}} {
		for _, size := range []int{1, 2, 4} {
			commtest.Run(t, size, func(ctx context.Context, c *comm.Comm) error {
				params := mixed(c.Rank())
				d, err := NewTensors(ctx, c, params, opts)
				if err != nil {
					return err
				}
				for i, want := range mixed(0) {
					if !bytes.Equal(params[i].Data.HostSlice(), want.Data.HostSlice()) {
						return fmt.Errorf("%s is not rank 0's", want.Name)
					}
				}
				for step := range 3 {
					d.ZeroGrad()
					for i, p := range slices.Backward(params) {
						addMixed(p, c.Rank(), step, i)
						d.Ready(i)
					}
					if err := d.Finish(ctx); err != nil {
						return err
					}
					for i, p := range params {
						if err := checkMixed(p, size, step, i); err != nil {
							return err
						}
					}
				}
				if got := d.Stats().Buckets; got != buckets {
					return fmt.Errorf("%d buckets, want %d: types share none", got, buckets)
				}
				return d.Close(ctx)
			})
		}
	}
}

func TestParametersThatHaveNoAverageAreRefused(t *testing.T) {
	onDevice, err := memtest.NewDevice("device").Alloc(comm.TypeOf[float32](), 2)
	if err != nil {
		t.Fatal(err)
	}
	for want, p := range map[string]*Tensor{
		`"p" has numbers of bool: want a type that has averages`: {Data: comm.Of(make([]bool, 2))},
		`"p" of 6 numbers has the shape [2 4], which is 8`: {Data: comm.Of(make([]float32, 6)),
			Shape: []int{2, 4}},
		`"p" of 6 numbers has rows of 4: want a divisor`: {Data: comm.Of(make([]float32, 6)), Row: 4},
		`"p" has rows of float64 in`:                     {Data: comm.Of(make([]float64, 6)), Row: 3},
		`"p" is in device: want host memory, or NewOn`:   {Data: onDevice},
	} {
		commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
			own := *p
			own.Name = "p"
			_, err := NewTensors(ctx, c, []*Tensor{&own}, Options{})
			return wantError(err, want)
		})
	}
}

// Rank 0 changes its statistics in each step. The others have them after SyncBuffers.
func TestBuffersAreThoseOfRankZero(t *testing.T) {
	commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error {
		mean, count, seen := []float32{float32(c.Rank()), 1}, []int64{int64(c.Rank())},
			[]bool{c.Rank() == 0, false, true}
		d, err := New(ctx, c, testParams(0, 3), Options{Buffers: []Slice{
			{"mean", comm.Of(mean)}, {"count", comm.Of(count)}, {"seen", comm.Of(seen)},
		}})
		if err != nil {
			return err
		}
		for step := range 3 {
			if mean[0] != float32(step) || mean[1] != 1 || count[0] != int64(step) || !seen[0] || seen[1] || !seen[2] {
				return fmt.Errorf("step %d: buffers are %v, %v, %v", step, mean, count, seen)
			}
			mean[0], count[0], seen[0] = float32(c.Rank()+step+1), int64(2*c.Rank()+step+1), c.Rank() == 0
			if err := d.SyncBuffers(ctx); err != nil {
				return err
			}
		}
		return d.Close(ctx)
	})
}
