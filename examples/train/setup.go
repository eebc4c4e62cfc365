package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"math"

	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/comm/ddp/sampler"
	"gompi/comm/ddp/snapshot"
	"gompi/examples/internal/nn"
)

// bucketBytes is a little more than a hidden layer's gradients. This model is so small that ddp's
// default, chosen for large models, would send most of it as one message when little computation is
// left to overlap.
const bucketBytes = 528 << 10

// newTrainer gives every rank the text, the same network, and the state of an earlier job's
// snapshot or, with -recover, of k.
func newTrainer(ctx context.Context, c *comm.Comm, cfg config, out io.Writer, k *kept) (*trainer, error) {
	corpus, err := shareCorpus(ctx, c, cfg.data)
	if err != nil {
		return nil, err
	}
	t := &trainer{cfg: cfg, c: c, corpus: corpus}
	shape := cfg.shape
	shape.Rows = max(64, cfg.exact, (cfg.batch/c.Size()+cfg.accumulate)/cfg.accumulate)
	shape.Workers = nn.WorkersOf(c.Size())
	if t.model, err = newModel(ctx, c, cfg.device, shape, cfg.seed); err != nil {
		return nil, err
	}
	if err := t.prepare(ctx, out, k); err != nil {
		return nil, errors.Join(err, t.model.Close())
	}
	return t, nil
}

// prepare creates everything for training beside the model.
func (t *trainer) prepare(ctx context.Context, out io.Writer, k *kept) (err error) {
	if err := t.newSampler(t.cfg.seed); err != nil {
		return err
	}
	t.epochSteps = t.stepsPerEpoch() // independent of the seed
	if t.hook, err = newHook(t.cfg.hook, t.planned()); err != nil {
		return err
	}
	if err := t.restore(ctx); err != nil {
		return err
	}
	if t.cfg.recovers() {
		if err := t.adopt(ctx, k, out); err != nil {
			return err
		}
	}
	if err := t.newSampler(t.state.Seed); err != nil {
		return err
	}
	t.last = t.planned()
	t.describe(out)
	t.d, err = t.model.share(ctx, t.c, t.options())
	return err
}

func (t *trainer) newSampler(seed uint64) (err error) {
	t.sampler, err = sampler.New(len(t.corpus.Train), t.cfg.batch, seed, sampler.Drop)
	if err == nil && t.cfg.exact > 0 {
		t.sampler, err = t.sampler.Micro(t.cfg.exact)
	}
	return err
}

// stepsPerEpoch returns the number of batches in an epoch. An epoch begins at the end of the
// previous one in the shuffled text.
func (t *trainer) stepsPerEpoch() int64 {
	whole := int64(t.sampler.Steps())
	if t.cfg.epochSamples == 0 {
		return whole
	}
	return min(whole, int64(max(1, t.cfg.epochSamples/t.cfg.batch)))
}

// stepsOf returns the number of steps in some epochs, or the largest int64 if it overflows.
func (t *trainer) stepsOf(epochs int) int64 {
	if t.epochSteps > 0 && int64(epochs) > math.MaxInt64/t.epochSteps {
		return math.MaxInt64
	}
	return int64(epochs) * t.epochSteps
}

// planned returns the last step; with -max-time a guess, until the time of a step is known.
func (t *trainer) planned() int64 {
	if t.cfg.maxTime > 0 {
		return min(t.lastStep(), t.state.Step+defaultSteps)
	}
	return t.lastStep()
}

// lastStep returns the last step by -steps and -epochs.
func (t *trainer) lastStep() int64 {
	switch all := t.stepsOf(t.cfg.epochs); {
	case t.cfg.evalOnly:
		return t.state.Step
	case t.cfg.epochs == 0 && t.cfg.steps == 0: // -max-time alone
		return math.MaxInt64
	case t.cfg.epochs == 0:
		return int64(t.cfg.steps)
	case t.cfg.steps == 0:
		return all
	default:
		return min(all, int64(t.cfg.steps))
	}
}

// restore lets state refer to all memory that a snapshot saves and, if there is a snapshot, loads
// it.
func (t *trainer) restore(ctx context.Context) (err error) {
	t.state.Seed = t.cfg.seed
	t.best[0] = math.Inf(1)
	t.state.Slices = append(t.model.parameters(), t.model.Memory()...)
	t.state.Slices = append(t.state.Slices, ddp.Slice{Name: "best held-out loss", Data: comm.Of(t.best[:])})
	if t.state.Hook, err = t.model.hookMemory(t.hook); err != nil {
		return err
	}
	if t.cfg.snapshot == "" || !t.cfg.resume && !t.cfg.evalOnly {
		return nil
	}
	t.loaded, err = snapshot.Load(ctx, t.c, t.cfg.snapshot, &t.state)
	if err == nil && t.cfg.evalOnly && !t.loaded.Found {
		return fmt.Errorf("snapshot %s: no such file", t.cfg.snapshot)
	}
	return err
}

// sources is the text for training if there is no other.
//
//go:embed *.go internal/*/*.go
var sources embed.FS

// shareCorpus reads the text on rank 0 and sends it to the others.
func shareCorpus(ctx context.Context, c *comm.Comm, dir string) (*corpus, error) {
	all := &corpus{}
	err := ddp.OnRankZero(ctx, c, func() (err error) {
		all, err = openCorpus(dir, sources)
		return err
	})
	if err != nil {
		return nil, err
	}
	sizes := []int{len(all.Train), len(all.Held)}
	if err := comm.Bcast(ctx, c, 0, sizes); err != nil {
		return nil, err
	}
	if c.Rank() != 0 {
		all.Train, all.Held = make([]byte, sizes[0]), make([]byte, sizes[1])
	}
	if err := comm.Bcast(ctx, c, 0, all.Train); err != nil {
		return nil, err
	}
	return all, comm.Bcast(ctx, c, 0, all.Held)
}

func (t *trainer) describe(out io.Writer) {
	size := 0
	for _, p := range t.model.parameters() {
		size += p.Data.Len()
	}
	fmt.Fprintf(out, "text: %s, %d bytes to train on, %d held out, digest %s\n",
		t.corpus.Source, len(t.corpus.Train), len(t.corpus.Held), t.corpus.Digest())
	fmt.Fprintf(out, "model: %d bytes of context, hidden layers %v, %d parameters (%.1f MB of gradients)\n",
		t.cfg.shape.Context, t.cfg.shape.Hidden, size, float64(4*size)/1e6)
	if t.loaded.Found {
		fmt.Fprintf(out, "snapshot: going on from %s, saved after step %d\n", t.cfg.snapshot, t.state.Step)
		if how := t.loaded.Hook; how != snapshot.NoMemory {
			fmt.Fprintf(out, "snapshot: memory of the hook: %v\n", how)
		}
	}
	steps := "no steps"
	switch {
	case t.state.Step >= t.last:
	case t.cfg.maxTime > 0:
		steps = fmt.Sprintf("steps from %d on for %v", t.state.Step+1, t.cfg.maxTime)
	default:
		steps = fmt.Sprintf("steps %d to %d", t.state.Step+1, t.last)
	}
	fmt.Fprintf(out, "run: %s of %d samples, learning rate %.4g, on %d ranks of %s, overlap %v, hook %s, exact %d\n",
		steps, t.cfg.batch, t.cfg.peakRate(), t.c.Size(), t.model, t.cfg.overlap, t.cfg.hook, t.cfg.exact)
}
