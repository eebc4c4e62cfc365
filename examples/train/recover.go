package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/comm/ddp/sampler"
	"gompi/comm/ddp/snapshot"
)

// With -recover the ranks that are left go on when one dies: gompirun -recover lets them live. All
// ranks have the same state after each step. So what a survivor had then is as good as any other's,
// and the one that has come farthest hands its state to the others, and to new ranks. What
// each rank has for itself starts anew: what -hook has not sent, and the means of a line of
// progress that was interrupted.

// The values of -recover.
const (
	endWithRank = "no"
	shrink      = "shrink"
	restore     = "restore"
)

func (cfg *config) checkRecover() error {
	switch {
	case cfg.recover == endWithRank:
	case cfg.recover != shrink && cfg.recover != restore:
		return fmt.Errorf("-recover %q: want %s, %s or %s", cfg.recover, endWithRank, shrink, restore)
	case cfg.device != "host":
		return fmt.Errorf("-recover %s with -device %s: want -device host", cfg.recover, cfg.device)
	case cfg.trace != "":
		return fmt.Errorf("-recover %s with -trace: want one of them, as a rank that dies takes its part of the trace along", cfg.recover)
	}
	return nil
}

func (cfg *config) recovers() bool { return cfg.recover != endWithRank }

// renew returns the communicator to go on with when a member of c has died, nil if the job ends.
func (cfg *config) renew(ctx context.Context, c *comm.Comm) (*comm.Comm, error) {
	switch cfg.recover {
	case shrink:
		return c.Shrink(ctx)
	case restore:
		return c.Restore(ctx)
	}
	return nil, nil
}

// A kept is the state of a training that was interrupted.
type kept struct {
	step        int64
	seed        uint64
	position    sampler.Position
	slices      [][]byte // of shared; nil if there is no state
	bucketOrder []int
	points      []point
	evaluations []evaluation
}

// shared is the part of the state, with that of -hook, that is the same on all ranks.
func (t *trainer) shared() []ddp.Slice { return slices.Concat(t.state.Slices, t.state.Hook.Shared) }

// keep copies the state of t.
func (k *kept) keep(t *trainer, points []point, evaluations []evaluation) {
	*k = kept{step: t.state.Step, seed: t.state.Seed, position: t.state.Position, bucketOrder: t.state.BucketOrder,
		points: points, evaluations: evaluations}
	for _, s := range t.state.Slices {
		k.slices = append(k.slices, slices.Clone(s.Data.HostSlice()))
	}
	for _, b := range t.settled {
		k.slices = append(k.slices, slices.Clone(b))
	}
}

// settle copies what the hook remembers at the end of a step: one that fails has changed some of
// it, and is made again.
func (t *trainer) settle() {
	if len(t.settled) == 0 {
		t.settled = make([][]byte, len(t.state.Hook.Shared))
	}
	for i, s := range t.state.Hook.Shared {
		t.settled[i] = append(t.settled[i][:0], s.Data.HostSlice()...)
	}
}

// adopt gives t and k, on all ranks, the state of the rank that has come farthest: in this process
// before it was interrupted, or in the snapshot. If it fails, k stays as it is.
func (t *trainer) adopt(ctx context.Context, k *kept, out io.Writer) error {
	saved := t.state.Step
	if k.slices != nil && k.step >= saved {
		t.state.Step, t.state.Seed, t.state.Position, t.state.BucketOrder = k.step, k.seed, k.position, k.bucketOrder
		for i, s := range t.shared() {
			copy(s.Data.HostSlice(), k.slices[i])
		}
	}
	// How far a rank has come: its step, and what was due after that.
	mine := [7]int64{t.state.Step, int64(len(k.points)), int64(len(k.evaluations)),
		int64(t.state.Seed), t.state.Position.Epoch, t.state.Position.Offset, int64(len(t.state.BucketOrder))}
	all := make([]int64, len(mine)*t.c.Size())
	if err := comm.Allgather(ctx, t.c, mine[:], all); err != nil {
		return err
	}
	of := func(r int) []int64 { return all[len(mine)*r:][:len(mine)] }
	best := 0
	for r := range t.c.Size() {
		if slices.Compare(of(r)[:3], of(best)[:3]) > 0 {
			best = r
		}
	}
	a := of(best)
	t.state.Step, t.state.Seed, t.state.Position = a[0], uint64(a[3]), sampler.Position{Epoch: a[4], Offset: a[5]}
	if t.recovered = a[0] > 0 && (a[0] > saved || a[1] > 0); t.recovered {
		fmt.Fprintf(out, "recovery: going on after step %d on %d ranks\n", a[0], t.c.Size())
	}
	if a[0] > saved {
		t.forget(out)
	}
	if a[0] > 0 {
		if err := t.bcastState(ctx, best, int(a[6])); err != nil {
			return err
		}
	}
	points, evaluations, err := t.shareCurve(ctx, k, best, int(a[1]), int(a[2]))
	if err == nil {
		t.settle()
		k.keep(t, points, evaluations)
	}
	return err
}

// bcastState gives all ranks what is shared of the state of rank best, whose BucketOrder has so many
// parameters.
func (t *trainer) bcastState(ctx context.Context, best, params int) error {
	if t.c.Rank() != best {
		t.state.BucketOrder = append([]int(nil), make([]int, params)...) // nil if there is none
	}
	if err := comm.Bcast(ctx, t.c, best, t.state.BucketOrder); err != nil {
		return err
	}
	for _, s := range t.shared() {
		if err := t.c.Bcast(ctx, best, s.Data); err != nil {
			return err
		}
	}
	return nil
}

// forget drops what is of a snapshot alone, when the ranks have gone beyond its step.
func (t *trainer) forget(out io.Writer) {
	t.loaded = snapshot.Loaded{}
	for _, own := range t.state.Hook.Own {
		clear(own.Data.HostSlice())
	}
	if len(t.state.Hook.Own) > 0 {
		fmt.Fprintf(out, "recovery: what -hook %s had not sent is forgotten\n", t.cfg.hook)
	}
}

// shareCurve returns, on all ranks, the n points and m evaluations of rank best.
func (t *trainer) shareCurve(ctx context.Context, k *kept, best, n, m int) (points []point, evaluations []evaluation, err error) {
	const each, eachHeld = 5, 3
	numbers := make([]float64, 0, each*n+eachHeld*m)
	if t.c.Rank() == best {
		for _, p := range k.points {
			numbers = append(numbers, float64(p.step), p.loss, p.speed, p.compute, p.exposed)
		}
		for _, e := range k.evaluations {
			numbers = append(numbers, float64(e.step), e.loss, e.accuracy)
		}
	}
	numbers = numbers[:cap(numbers)]
	if err := comm.Bcast(ctx, t.c, best, numbers); err != nil {
		return nil, nil, err
	}
	for x := range slices.Chunk(numbers[:each*n], each) {
		points = append(points, point{int64(x[0]), x[1], x[2], x[3], x[4]})
	}
	for x := range slices.Chunk(numbers[each*n:], eachHeld) {
		evaluations = append(evaluations, evaluation{int64(x[0]), x[1], x[2]})
	}
	return points, evaluations, nil
}
