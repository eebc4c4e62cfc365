package compress

import (
	"context"
	"errors"
	"os"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/ddp"
	"gompi/internal/env"
)

// BenchmarkSteps measures a step of training that averages 25 MiB of gradients and computes
// nothing. Alone it shows the cost of a hook's computation. Under gompirun it is collective:
//
//	go test -c ./comm/ddp/compress
//	gompirun -np 2 -hostfile hosts ./compress.test -test.run '^$' -test.bench Steps -test.benchtime 10x
//
// There -test.benchtime is a number of steps, the same on all ranks.
func BenchmarkSteps(b *testing.B) {
	if os.Getenv(env.BootFD) == "" {
		commtest.Run(b, 1, func(ctx context.Context, c *comm.Comm) error { return benchmarkSteps(ctx, b, c) })
		return
	}
	c, err := comm.Init(b.Context())
	if err == nil {
		err = errors.Join(benchmarkSteps(b.Context(), b, c), c.Close(b.Context()))
	}
	if err != nil {
		b.Fatal(err)
	}
}

func benchmarkSteps(ctx context.Context, b *testing.B, c *comm.Comm) (failed error) {
	for _, h := range []struct {
		name    string
		newHook func() ddp.Hook
	}{
		{"plain", func() ddp.Hook { return nil }},
		{"fp16", FP16},
		{"bf16", BF16},
		{"powersgd=2", func() ddp.Hook { return powersgd(b, PowerSGDOptions{Rank: 2}) }},
		{"powersgd=8", func() ddp.Hook { return powersgd(b, PowerSGDOptions{Rank: 8}) }},
		{"topk=1%", func() ddp.Hook { return topk(b, 0.01) }},
	} {
		b.Run(h.name, func(b *testing.B) {
			if failed == nil {
				failed = steps(ctx, b, c, h.newHook())
			}
		})
	}
	return failed
}

func steps(ctx context.Context, b *testing.B, c *comm.Comm, h ddp.Hook) error {
	const rows, cols, matrices = 800, 1024, 8
	var params []*ddp.Param
	for i := range matrices {
		params = append(params, &ddp.Param{Name: string(rune('a' + i)), Data: make([]float32, rows*cols),
			Shape: []int{rows, cols}})
	}
	d, err := ddp.New(ctx, c, params, ddp.Options{Hook: h})
	if err != nil {
		return err
	}
	gradient := make([]float32, rows*cols)
	random(gradient, c.Rank(), 0)
	step := func() error {
		b.StopTimer()
		for _, p := range params {
			copy(p.Grad, gradient)
		}
		if err := comm.Barrier(ctx, c); err != nil {
			return err
		}
		b.StartTimer()
		for i := range params {
			d.Ready(len(params) - 1 - i)
		}
		return d.Finish(ctx)
	}
	if err := step(); err != nil { // takes memory
		return err
	}
	b.ResetTimer()
	b.SetBytes(4 * rows * cols * matrices)
	for b.Loop() {
		if err := step(); err != nil {
			return err
		}
	}
	return d.Close(ctx)
}
