package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/examples/internal/nn"
)

// A busy makes backward longer by useless matrix products: before a parameter's gradient is ready
// it does the parameter's share of them. Their number is calibrated once. So, like real work, they
// take longer if the processor is taken away.
type busy struct {
	product *nn.Linear
	x       nn.Matrix
	counts  []int // products of each parameter
}

const (
	busySide   = 256 // of the matrices
	busyTrials = 600 // timed products, of which the first half does not count
)

// newBusy returns products that take a given time in all, divided among the parameters by their
// lengths. It is collective: all ranks do the same number of products.
func newBusy(ctx context.Context, c *comm.Comm, params []*ddp.Param, total time.Duration) (*busy, error) {
	b := &busy{counts: make([]int, len(params))}
	if total == 0 {
		return b, nil
	}
	b.product = nn.NewLinear("busy", busySide, busySide, 1, oneWorker, rand.New(rand.NewPCG(1, 1)))
	b.x = nn.NewMatrix(busySide, busySide)
	for i := range b.x.Data {
		b.x.Data[i] = 1
	}
	var times []time.Duration
	for range busyTrials {
		start := time.Now()
		b.product.Forward(b.x)
		times = append(times, time.Since(start))
	}
	times = times[busyTrials/2:] // the processor has reached its speed, which may take half a second
	slices.Sort(times)
	one := []int64{int64(times[len(times)/2])}
	if err := comm.Allreduce(ctx, c, one, one, comm.Max); err != nil {
		return nil, fmt.Errorf("agreeing on a product's time: %w", err)
	}
	b.divide(params, int(int64(total)/max(one[0], 1)))
	return b, nil
}

// divide gives each parameter its part of n products. Fractions of products are carried to the
// next.
func (b *busy) divide(params []*ddp.Param, n int) {
	all, done, given := 0, 0, 0
	for _, p := range params {
		all += len(p.Data)
	}
	for i, p := range slices.Backward(params) { // in the order of backward
		done += len(p.Data)
		b.counts[i] = int(int64(n)*int64(done)/int64(all)) - given
		given += b.counts[i]
	}
}

// before does the products of parameter i.
func (b *busy) before(i int) {
	if b == nil {
		return
	}
	for range b.counts[i] {
		b.product.Forward(b.x)
	}
}
