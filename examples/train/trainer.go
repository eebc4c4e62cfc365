package main

import (
	"context"
	"errors"
	"io"
	"math"
	"time"

	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/examples/train/internal/text"
)

// A result is how well the network predicts text it has not seen, beside what
// two simple methods make of the same text, in bits per byte.
type result struct {
	loss, unigram, flate float64
	curve                []point
}

// A trainer is one rank's part of the training.
type trainer struct {
	cfg        config
	c          *comm.Comm
	corpus     *text.Corpus
	model      model
	d          *ddp.DDP
	sampler    *ddp.Sampler
	state      ddp.Snapshot // what is saved; refers to the parameters and Adam's memory
	resumed    bool         // state is from a snapshot
	epochSteps int64        // steps of an epoch
	last       int64        // the step to stop after

	share             []int  // room for this rank's samples of a batch,
	contexts, targets []byte // and for what the network gets of them
}

// train does the whole job. All ranks call it with the same configuration.
func train(ctx context.Context, c *comm.Comm, cfg config, out io.Writer) (res *result, err error) {
	t, err := newTrainer(ctx, c, cfg, out)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closing := errors.Join(t.d.Close(ctx), t.model.Close()); err == nil {
			err = closing
		}
	}()
	show, err := newProgress(ctx, t, out)
	if err != nil {
		return nil, err
	}
	if err := t.loop(ctx, show); err != nil {
		return nil, err
	}
	if err := t.d.CheckReplicas(ctx); err != nil {
		return nil, err
	}
	if res, err = t.judge(ctx); err != nil {
		return nil, err
	}
	res.curve = show.points
	return res, show.finish(ctx, res)
}

// loop is the training itself.
func (t *trainer) loop(ctx context.Context, show *progress) error {
	for t.state.Step < t.last {
		if err := t.step(ctx, show); err != nil {
			return err
		}
		if err := show.after(ctx); err != nil {
			return err
		}
		if t.saveNow() {
			if err := errors.Join(t.d.Wait(ctx), t.model.Sync()); err != nil {
				return err
			}
			if err := ddp.Save(ctx, t.c, t.cfg.snapshot, &t.state); err != nil {
				return err
			}
		}
	}
	return nil
}

// step trains on one batch.
func (t *trainer) step(ctx context.Context, show *progress) error {
	begin := time.Now()
	share, total, next := t.sampler.Next(t.share[:0], t.state.Position, t.c.Rank(), t.c.Size())
	// Finish averages over ranks. Divided by this, gradients become averages
	// over the samples of the whole batch, even if shares are uneven.
	scale := float32(t.c.Size()) / float32(total)
	t.d.ZeroGrad()
	var loss float64
	for i := range t.cfg.accumulate {
		lo, hi := ddp.Shard(len(share), i, t.cfg.accumulate)
		t.gather(share[lo:hi])
		part, err := t.model.Backward(t.contexts, t.targets, scale, t.d.Ready)
		if err != nil {
			return err
		}
		loss += part
	}
	if err := t.d.Finish(ctx); err != nil {
		return err
	}
	if err := t.model.Step(t.state.Step+1, t.rate()); err != nil {
		return err
	}
	t.share, t.state.Position = share, next
	t.state.Step++
	show.add(loss, len(share), time.Since(begin))
	return nil
}

// gather collects the target byte of each sample and the context before it.
func (t *trainer) gather(samples []int) {
	t.contexts, t.targets = t.contexts[:0], t.targets[:0]
	for _, at := range samples {
		t.contexts = appendContext(t.contexts, t.corpus.Train, at, t.cfg.shape.Context)
		t.targets = append(t.targets, t.corpus.Train[at])
	}
}

// appendContext appends the n bytes of text before at, zeros before the start.
func appendContext(dst, text []byte, at, n int) []byte {
	for range n - at {
		dst = append(dst, 0)
	}
	return append(dst, text[max(0, at-n):at]...)
}

// rate returns the learning rate of the coming step: it rises for a while,
// because Adam's first steps rest on few gradients, then falls to zero along a
// cosine.
func (t *trainer) rate() float64 {
	const warmUp = 20
	step := float64(t.state.Step + 1)
	return t.cfg.rate * min(1, step/warmUp) * (1 + math.Cos(math.Pi*step/float64(t.last+1))) / 2
}

// saveNow reports whether to save after the step that is done.
func (t *trainer) saveNow() bool {
	every, done := int64(t.cfg.saveEvery), t.state.Step
	if t.cfg.epochs > 0 {
		every *= t.epochSteps
	}
	return t.cfg.snapshot != "" && (done == t.last || every > 0 && done%every == 0)
}

// judge measures the network on the text held out. Each rank takes a part.
func (t *trainer) judge(ctx context.Context) (*result, error) {
	held := t.corpus.Held
	lo, hi := ddp.Shard(len(held), t.c.Rank(), t.c.Size())
	var sum float64
	for at := lo; at < hi; at += t.model.Rows() {
		targets := held[at:min(hi, at+t.model.Rows())]
		t.contexts = t.contexts[:0]
		for i := range targets {
			t.contexts = appendContext(t.contexts, held, at+i, t.cfg.shape.Context)
		}
		part, err := t.model.Loss(t.contexts, targets)
		if err != nil {
			return nil, err
		}
		sum += part
	}
	mean, err := ddp.Mean(ctx, t.c, sum, hi-lo)
	if err != nil {
		return nil, err
	}
	return &result{loss: mean / math.Ln2, unigram: text.Unigram(held), flate: text.Flate(held)}, nil
}
