package main

import (
	"errors"
	"fmt"
	"slices"

	"gompi/comm/ddp"
	"gompi/comm/ddp/compress"
	"gompi/comm/ddp/sampler"
)

// hookNames are the values of -hook.
var hookNames = []string{"none", "fp16", "bf16", "powersgd", "topk"}

// newHook returns the hook for a training of a number of steps, nil for -hook none.
func newHook(name string, steps int64) (ddp.Hook, error) {
	switch name {
	case "fp16":
		return compress.FP16(), nil
	case "bf16":
		return compress.BF16(), nil
	case "powersgd":
		return compress.PowerSGD(compress.PowerSGDOptions{Rank: 2, StartStep: int(steps / 10)})
	case "topk":
		return compress.TopK(0.01)
	}
	return nil, nil
}

// quantum is the rounding unit of -exact, far below the resolution of float32 gradients.
const quantum = 0x1p-44

// options returns the settings of the averages.
func (t *trainer) options() ddp.Options {
	opts := ddp.Options{
		FirstBucketBytes: bucketBytes, BucketBytes: bucketBytes, BucketOrder: t.state.BucketOrder,
		Accumulate: t.cfg.accumulate, NoOverlap: !t.cfg.overlap, Trace: t.cfg.trace != "", Hook: t.hook,
	}
	if t.cfg.exact > 0 {
		opts.Quantum, opts.Accumulate = quantum, t.sampler.Passes(t.c.Size())
	}
	return opts
}

// passes divides this rank's share of a batch into backward passes.
func (t *trainer) passes(share []int) [][]int {
	if t.cfg.exact > 0 {
		return slices.Collect(slices.Chunk(share, t.cfg.exact))
	}
	var parts [][]int
	for i := range t.cfg.accumulate {
		lo, hi := sampler.Shard(len(share), i, t.cfg.accumulate)
		parts = append(parts, share[lo:hi])
	}
	return parts
}

// scale is the factor that makes gradients averages over the samples of a batch, even if shares are
// uneven: Finish averages over ranks or, with -exact, adds up.
func (t *trainer) scale(samples int) float32 {
	if t.cfg.exact > 0 {
		return 1 / float32(samples)
	}
	return float32(t.c.Size()) / float32(samples)
}

// checkAverage returns an error unless the flags for averages fit together.
func (cfg *config) checkAverage() error {
	switch {
	case !slices.Contains(hookNames, cfg.hook):
		return fmt.Errorf("-hook %q: want one of %v", cfg.hook, hookNames)
	case cfg.exact > 0 && cfg.hook != "none":
		return errors.New("-exact with -hook: want one of them")
	case cfg.exact > 0 && cfg.accumulate > 1:
		return errors.New("-exact with -accumulate: want one of them, as -exact sets the number of samples of a pass")
	}
	return nil
}
