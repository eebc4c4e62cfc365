package ddp_test

import (
	"context"
	"fmt"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/ddp"
	"gompi/comm/ddp/sampler"
)

// A training finds the mean of the data: the model is one number, its loss the squared distance.
func ExampleNew() {
	data := []float32{1, 2, 3, 4, 5, 6, 7, 8}
	train := func(ctx context.Context, c *comm.Comm) error {
		p := &ddp.Param{Name: "mean", Data: []float32{0}}
		d, err := ddp.New(ctx, c, []*ddp.Param{p}, ddp.Options{})
		if err != nil {
			return err
		}
		defer d.Close(ctx)
		s, err := sampler.New(len(data), 4, 1, sampler.Short) // batches of 4 samples of all ranks
		if err != nil {
			return err
		}
		for at := (sampler.Position{}); at.Epoch < 200; {
			share, total, next := s.Next(nil, at, c.Rank(), c.Size())
			d.ZeroGrad()
			for _, i := range share {
				p.Grad[0] += (p.Data[0] - data[i]) * float32(c.Size()) / float32(total)
			}
			d.Ready(0)
			if err := d.Finish(ctx); err != nil { // now p.Grad is the average of all ranks
				return err
			}
			p.Data[0] -= p.Grad[0] / float32(at.Epoch+2)
			at = next
		}
		if c.Rank() == 0 {
			fmt.Printf("%.1f\n", p.Data[0])
		}
		return nil
	}
	for _, err := range commtest.Ranks(context.Background(), 2, comm.Config{}, train) {
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output: 4.5
}
