package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/comm/ddp/sampler"
	"gompi/comm/ddp/snapshot"
	"gompi/internal/atomicfile"
)

// A Model is the object of a training: a network with its optimiser and its data. A rank's Model is
// used by one goroutine.
type Model interface {
	// Params returns the parameters whose gradients ddp averages.
	Params() []*ddp.Param
	// Memory returns the optimiser's memory from step to step.
	Memory() []ddp.Slice
	// Load collects these samples, for training or held out, for the next Learn or Judge.
	Load(samples []int, held bool)
	// Learn adds scale times the gradient of the sum of losses, over the loaded samples, to the
	// gradients, and announces each complete one to d. Learn returns the sums whose means are
	// Spec.Meters.
	Learn(d *ddp.DDP, scale float32) []float64
	// Judge returns the same sums, without learning.
	Judge() []float64
	// Update makes a step with the averages that d has left in the gradients.
	Update(d *ddp.DDP, at At)
}

// At is the progress of a training.
type At struct {
	Epoch, Step int64 // done before this step; Step counts over all epochs
}

// A Spec has the other properties of a training.
type Spec struct {
	Samples, Held int     // numbers of samples for training and held out
	Checksum      uint32  // of all samples, saved in snapshots; 0 if they depend on the seed
	Meters        []Meter // the first is the loss
	Best          int     // index of the meter, on held-out samples, for -keep-best
	Options       ddp.Options
}

// A Meter is a mean over samples, for display.
type Meter struct {
	Name   string
	Show   func(mean float64) string
	Higher bool // higher is better
}

// A Result is the outcome of a training.
type Result struct {
	Curve   [][]float64 // for each epoch, the means of the meters over the training samples
	Held    []float64   // the means over held-out samples, after the last epoch
	Bytes   int64       // of gradients that this rank has averaged with others
	Steps   int64       // in all, with the steps before the snapshot
	Own     int64       // steps of this run
	Resumed bool
}

// judged is the number of samples judged at a time.
const judged = 256

// A trainer is one rank's part of a training.
type trainer struct {
	c       *comm.Comm
	f       *Flags
	m       Model
	spec    Spec
	out     io.Writer
	d       *ddp.DDP
	sampler *sampler.Sampler
	state   snapshot.State // for snapshots; refers to the memory of the parameters and the optimiser
	best    []float32      // of all epochs, by the meter Spec.Best
	data    []int64        // Samples, Held and Checksum
	result  Result

	share []int  // room for this rank's samples of a batch
	since meters // of the epoch
	lines meters // since the last line of progress
}

// Train trains m as f says. All ranks call it with equal arguments.
func Train(ctx context.Context, c *comm.Comm, f *Flags, m Model, spec Spec, out io.Writer) (res *Result, err error) {
	t := &trainer{c: c, f: f, m: m, spec: spec, out: out, best: []float32{float32(math.NaN())}}
	t.data = []int64{int64(spec.Samples), int64(spec.Held), int64(spec.Checksum)}
	if f.Eval && spec.Held == 0 {
		return nil, errors.New("-eval: this program holds no samples out to judge by")
	}
	if !f.Eval {
		if err := ddp.OnRankZero(ctx, c, func() error { return CheckFile("snapshot", f.Snapshot) }); err != nil {
			return nil, err
		}
	}
	if err := t.restore(ctx); err != nil {
		return nil, err
	}
	batch, err := f.batchOfAll(ctx, c)
	if err != nil {
		return nil, err
	}
	if t.sampler, err = sampler.New(spec.Samples, batch, t.state.Seed, sampler.Short); err != nil {
		return nil, err
	}
	spec.Options.BucketOrder = t.state.BucketOrder
	if t.d, err = ddp.New(ctx, c, m.Params(), spec.Options); err != nil {
		return nil, err
	}
	defer func() {
		if closing := t.d.Close(ctx); err == nil {
			err = closing
		}
	}()
	t.describe(batch)
	for t.state.Position.Epoch < int64(f.Epochs) && !f.Eval {
		if err := t.epoch(ctx); err != nil {
			return nil, err
		}
	}
	return t.finish(ctx)
}

// CheckFile returns the error that would keep a file from being written, before the work for its
// content.
func CheckFile(what, path string) error {
	if err := atomicfile.Check(path); err != nil {
		return fmt.Errorf("%s %s: %w", what, path, err)
	}
	return nil
}

// epoch trains on all samples once, judges the model by held-out samples, and saves the model.
func (t *trainer) epoch(ctx context.Context) error {
	t.since, t.lines = newMeters(t), newMeters(t)
	for now := t.state.Position.Epoch; t.state.Position.Epoch == now; {
		if err := t.step(ctx); err != nil {
			return err
		}
		if err := t.showProgress(ctx); err != nil {
			return err
		}
	}
	took := time.Since(t.since.begin)
	means, err := t.since.means(ctx)
	if err != nil {
		return err
	}
	t.result.Curve = append(t.result.Curve, means[:len(t.spec.Meters)])
	if err := t.judge(ctx); err != nil {
		return err
	}
	t.showEpoch(means, took)
	return t.save(ctx)
}

// step trains on one batch, of which every rank takes a share.
func (t *trainer) step(ctx context.Context) error {
	begin := time.Now()
	share, total, next := t.sampler.Next(t.share[:0], t.state.Position, t.c.Rank(), t.c.Size())
	t.m.Load(share, false)
	loaded := time.Now()
	t.d.ZeroGrad()
	// Finish averages over ranks. With this factor the gradients become averages over the samples
	// of the whole batch, even if shares are uneven.
	scale := float32(t.c.Size()) / float32(total)
	sums := t.m.Learn(t.d, scale)
	if err := t.d.Finish(ctx); err != nil {
		return err
	}
	t.m.Update(t.d, At{Epoch: t.state.Position.Epoch, Step: t.state.Step})
	t.share, t.state.Position = share, next
	t.state.Step++
	for _, m := range []*meters{&t.since, &t.lines} {
		m.add(sums, len(share), loaded.Sub(begin), time.Since(begin))
	}
	return nil
}

// judge measures the model on the held-out samples. Each rank takes a part, and no sample counts
// twice.
func (t *trainer) judge(ctx context.Context) error {
	if t.spec.Held == 0 {
		return nil
	}
	all := newMeters(t)
	lo, hi := sampler.Shard(t.spec.Held, t.c.Rank(), t.c.Size())
	for at := lo; at < hi; at += judged {
		t.share = t.share[:0]
		for i := at; i < min(hi, at+judged); i++ {
			t.share = append(t.share, i)
		}
		t.m.Load(t.share, true)
		all.add(t.m.Judge(), len(t.share), 0, 0)
	}
	means, err := all.means(ctx)
	if err != nil {
		return err
	}
	t.result.Held = means[:len(t.spec.Meters)]
	return nil
}

// restore lets state refer to all memory that a snapshot saves and, if there is a snapshot, loads
// it.
func (t *trainer) restore(ctx context.Context) (err error) {
	t.state.Seed = t.f.Seed
	for _, p := range t.m.Params() {
		t.state.Slices = append(t.state.Slices, ddp.Slice{Name: p.Name, Data: comm.Of(p.Data)})
	}
	t.state.Slices = append(t.state.Slices, t.m.Memory()...)
	t.state.Slices = append(t.state.Slices,
		ddp.Slice{Name: "best", Data: comm.Of(t.best)}, ddp.Slice{Name: "data", Data: comm.Of(t.data)})
	if t.state.Hook, err = ddp.MemoryOf(t.spec.Options.Hook, t.m.Params()); err != nil {
		return err
	}
	data := slices.Clone(t.data)
	path, must := t.f.fileToResume(), true
	if path == "" {
		path, must = t.f.Snapshot, t.f.Eval
	}
	if path == "" || t.f.Resume == "never" {
		return nil
	}
	loaded, err := snapshot.Load(ctx, t.c, path, &t.state)
	if err != nil {
		return err
	}
	if must && !loaded.Found {
		return fmt.Errorf("snapshot %s: no such file", path)
	}
	if loaded.Found && t.state.Seed != t.f.Seed && !t.f.Eval {
		return fmt.Errorf("snapshot %s: it was trained with -seed %d, not %d: want the same, or -resume never", path,
			t.state.Seed, t.f.Seed)
	}
	if loaded.Found && !slices.Equal(t.data, data) && !t.f.Eval {
		return fmt.Errorf("snapshot %s: it was trained with %s, not with %s: want the same data, or -resume never",
			path, dataText(t.data), dataText(data))
	}
	copy(t.data, data)
	if t.result.Resumed = loaded.Found; loaded.Found {
		fmt.Fprintf(t.out, "snapshot: going on from %s, saved after epoch %d and step %d\n", path,
			t.state.Position.Epoch, t.state.Step)
	}
	return nil
}

func dataText(data []int64) string {
	return fmt.Sprintf("%d samples and %d held out, whose checksum is %08x", data[0], data[1], data[2])
}

// save writes the snapshot if due, and a second one if the model is the best so far.
func (t *trainer) save(ctx context.Context) error {
	t.state.BucketOrder = t.d.BucketOrder()
	done := t.state.Position.Epoch
	if t.f.KeepBest && len(t.result.Held) > 0 {
		now := float32(t.result.Held[t.spec.Best])
		if t.best[0] != t.best[0] || now < t.best[0] != t.spec.Meters[t.spec.Best].Higher && now != t.best[0] {
			t.best[0] = now
			if err := snapshot.Save(ctx, t.c, t.f.Snapshot+".best", &t.state); err != nil {
				return err
			}
		}
	}
	due := done == int64(t.f.Epochs) || t.f.SaveEvery > 0 && done%int64(t.f.SaveEvery) == 0
	if t.f.Snapshot == "" || !due {
		return nil
	}
	return snapshot.Save(ctx, t.c, t.f.Snapshot, &t.state)
}

// finish checks that all ranks have the same model, and returns the result.
func (t *trainer) finish(ctx context.Context) (*Result, error) {
	if err := t.d.CheckReplicas(ctx); err != nil {
		return nil, err
	}
	if len(t.result.Curve) == 0 { // no epoch has judged the model
		if err := t.judge(ctx); err != nil {
			return nil, err
		}
		if len(t.result.Held) > 0 {
			fmt.Fprintf(t.out, "held out: %s\n", t.texts(t.result.Held))
		}
	}
	t.result.Steps, t.result.Own, t.result.Bytes = t.state.Step, int64(t.d.Stats().Steps), t.d.Stats().Bytes
	return &t.result, nil
}
