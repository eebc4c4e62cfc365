package main

import (
	"context"
	"errors"
	"io"
	"math"
	"time"

	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/comm/ddp/sampler"
	"gompi/comm/ddp/snapshot"
)

// A result is the network's loss on held-out text, beside the losses of two simple methods on the
// same text, in bits per byte.
type result struct {
	evaluation
	unigram, flate float64
	curve          []point
	evaluations    []evaluation // of -eval-every
}

// An evaluation is the network's result on held-out text.
type evaluation struct {
	step     int64
	loss     float64 // bits per byte
	accuracy float64 // share of bytes that the network predicts as most probable
}

// A trainer is one rank's part of the training.
type trainer struct {
	cfg        config
	c          *comm.Comm
	corpus     *corpus
	model      model
	d          *ddp.DDP
	sampler    *sampler.Sampler
	hook       ddp.Hook        // nil without -hook
	state      snapshot.State  // for snapshots; refers to the memory of parameters, Adam and hook
	loaded     snapshot.Loaded // the snapshot from which state comes
	recovered  bool            // state comes from a rank's memory, after another rank died
	epochSteps int64           // steps of an epoch
	last       int64           // the last step
	best       [1]float64      // least loss of an evaluation

	share             []int  // room for this rank's samples of a batch,
	contexts, targets []byte // and for the network's input

	hookCopy hookCopy // with -recover: after the last step
}

// train does the whole job. All ranks call it with the same configuration. It continues from k. If
// it fails with -recover, k has its progress.
func train(ctx context.Context, c *comm.Comm, cfg config, out io.Writer, k *kept) (res *result, err error) {
	t, err := newTrainer(ctx, c, cfg, out, k)
	if err != nil {
		return nil, err
	}
	show, err := newProgress(ctx, t, out, k)
	defer func() {
		closing := errors.Join(t.d.Close(ctx), t.model.Close(), show.closeFiles())
		if err == nil {
			err = closing
		}
		if err != nil && cfg.recovers() {
			k.keep(t, show.points, show.evaluations)
		}
	}()
	if err != nil {
		return nil, err
	}
	return t.run(ctx, show)
}

// run trains and judges.
func (t *trainer) run(ctx context.Context, show *progress) (*result, error) {
	if err := t.loop(ctx, show); err != nil {
		return nil, err
	}
	if err := t.d.CheckReplicas(ctx); err != nil {
		return nil, err
	}
	e, err := t.evaluate(ctx)
	if err != nil {
		return nil, err
	}
	held := t.corpus.Held
	res := &result{evaluation: e, unigram: unigramLoss(held), flate: flateLoss(held), curve: show.points,
		evaluations: show.evaluations}
	if err := show.finish(ctx, res); err != nil {
		return nil, err
	}
	if t.cfg.recovers() { // a rank may still need the others to recover
		return res, comm.Barrier(ctx, t.c)
	}
	return res, nil
}

// loop is the training itself.
func (t *trainer) loop(ctx context.Context, show *progress) error {
	if t.recovered { // work due after the last step may have been interrupted
		if err := t.judgeAndSave(ctx, show); err != nil {
			return err
		}
	}
	for t.state.Step < t.last {
		if err := context.Cause(ctx); err != nil { // before a step that could not be completed
			return err
		}
		if err := t.step(ctx, show); err != nil {
			return err
		}
		if err := show.after(ctx); err != nil {
			return err
		}
		if err := t.judgeAndSave(ctx, show); err != nil {
			return err
		}
	}
	return nil
}

// judgeAndSave does the work that is due after a step, if not done.
func (t *trainer) judgeAndSave(ctx context.Context, show *progress) error {
	if t.cfg.evalEvery > 0 && t.due(t.cfg.evalEvery) && !show.hasEvaluated(t.state.Step) {
		if err := t.evaluateNow(ctx, show); err != nil {
			return err
		}
	}
	if t.saveNow() {
		return t.save(ctx, t.cfg.snapshot)
	}
	return nil
}

func (t *trainer) save(ctx context.Context, path string) error {
	defer t.d.Span("save")()
	if err := t.model.Sync(); err != nil {
		return err
	}
	return snapshot.Save(ctx, t.c, path, &t.state)
}

// evaluateNow prints the network's result, and saves the network if it is the best so far.
func (t *trainer) evaluateNow(ctx context.Context, show *progress) error {
	begin := time.Now()
	e, err := t.evaluate(ctx)
	if err != nil {
		return err
	}
	took := time.Since(begin)
	if before := t.best[0]; e.loss < before {
		t.best[0] = e.loss
		if t.cfg.keepBest {
			if err := t.save(ctx, t.cfg.snapshot+".best"); err != nil {
				t.best[0] = before // not saved: with -recover, judge again
				return err
			}
		}
	}
	show.evaluated(e, took)
	return nil
}

// step trains on one batch.
func (t *trainer) step(ctx context.Context, show *progress) error {
	begin := time.Now()
	share, total, next := t.sampler.Next(t.share[:0], t.state.Position, t.c.Rank(), t.c.Size())
	t.d.ZeroGrad()
	var loss float64
	for _, pass := range t.passes(share) {
		t.gather(pass)
		part, err := t.model.Backward(t.contexts, t.targets, t.scale(total), t.d.Ready)
		if err != nil {
			return err
		}
		loss += part
	}
	if t.cfg.exact > 0 {
		t.d.SkipRest() // another rank may have one more pass
	}
	if err := t.d.Finish(ctx); err != nil {
		return err
	}
	if t.cfg.clipNorm > 0 {
		if _, err := t.d.ClipGradNorm(ctx, t.cfg.clipNorm); err != nil {
			return err
		}
	}
	end := t.d.Span("optimiser")
	if err := t.model.Step(t.state.Step+1, t.rate()); err != nil {
		return err
	}
	end()
	t.share, t.state.Position = share, next
	t.state.Step++
	t.state.BucketOrder = t.d.BucketOrder()
	if t.cfg.recovers() {
		t.copyHook()
	}
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

// rate returns the learning rate of the next step: it rises for a while, because Adam's first steps
// rest on few gradients, then falls to zero along a cosine.
func (t *trainer) rate() float64 {
	const warmUp = 20
	step := float64(t.state.Step + 1)
	return t.cfg.peakRate() * min(1, step/warmUp) * (1 + math.Cos(math.Pi*step/float64(t.last+1))) / 2
}

// saveNow reports whether to save after the step just done.
func (t *trainer) saveNow() bool {
	return t.cfg.snapshot != "" && (t.state.Step == t.last || t.cfg.saveEvery > 0 && t.due(t.cfg.saveEvery))
}

// due reports whether the step just done completes a multiple of every epochs, or of every steps
// without -epochs.
func (t *trainer) due(every int) bool {
	steps := int64(every)
	if t.cfg.epochs > 0 {
		steps = t.stepsOf(every)
	}
	return t.state.Step%steps == 0
}

// evaluate measures the network on the held-out text. Each rank takes a part.
func (t *trainer) evaluate(ctx context.Context) (evaluation, error) {
	defer t.d.Span("evaluate")()
	held := t.corpus.Held
	lo, hi := sampler.Shard(len(held), t.c.Rank(), t.c.Size())
	var loss, right float64
	for at := lo; at < hi; at += t.model.Rows() {
		targets := held[at:min(hi, at+t.model.Rows())]
		t.contexts = t.contexts[:0]
		for i := range targets {
			t.contexts = appendContext(t.contexts, held, at+i, t.cfg.shape.Context)
		}
		part, hits, err := t.model.Evaluate(t.contexts, targets)
		if err != nil {
			return evaluation{}, err
		}
		loss += part
		right += float64(hits)
	}
	loss, err := ddp.Mean(ctx, t.c, loss, hi-lo)
	if err != nil {
		return evaluation{}, err
	}
	accuracy, err := ddp.Mean(ctx, t.c, right, hi-lo)
	return evaluation{t.state.Step, loss / math.Ln2, accuracy}, err
}
