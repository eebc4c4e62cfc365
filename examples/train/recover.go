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

// With -recover the remaining ranks continue when one dies: gompirun -recover lets them live. All
// ranks have the same state after each step. So any survivor's state is valid, and the rank with
// most progress sends its state to the others, and to new ranks. The unsent numbers of -hook differ
// between ranks: survivors keep theirs, as after that step, and a dead rank's are lost. The means
// of an interrupted line of progress start anew.

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

// renew returns the communicator to continue with when a member of c has died, nil if the job ends.
func (cfg *config) renew(ctx context.Context, c *comm.Comm) (*comm.Comm, error) {
	switch cfg.recover {
	case shrink:
		return c.Shrink(ctx)
	case restore:
		return c.Restore(ctx)
	}
	return nil, nil
}

// A kept is the state of an interrupted training.
type kept struct {
	step        int64
	seed        uint64
	position    sampler.Position
	ranks       int      // number of ranks that have trained
	slices      [][]byte // of shared; nil without state
	own         [][]byte // of state.Hook.Own
	bucketOrder []int
	points      []point
	evaluations []evaluation
}

// shared is the part of the state, with -hook's, that is the same on all ranks.
func (t *trainer) shared() []ddp.Slice { return slices.Concat(t.state.Slices, t.state.Hook.Shared) }

// keep copies the state of t.
func (k *kept) keep(t *trainer, points []point, evaluations []evaluation) {
	*k = kept{step: t.state.Step, seed: t.state.Seed, position: t.state.Position, bucketOrder: t.state.BucketOrder,
		ranks: t.c.Size(), points: points, evaluations: evaluations}
	for _, s := range t.state.Slices {
		k.slices = append(k.slices, slices.Clone(s.Data.HostSlice()))
	}
	for _, b := range t.hookCopy.shared {
		k.slices = append(k.slices, slices.Clone(b))
	}
	for _, b := range t.hookCopy.own {
		k.own = append(k.own, slices.Clone(b))
	}
}

// A hookCopy is a copy of the hook's memory at the end of a step.
type hookCopy struct{ shared, own [][]byte }

// copyHook copies the hook's memory at the end of a step. A step that fails has changed parts of
// it, and is repeated.
func (t *trainer) copyHook() {
	t.hookCopy.shared = copyInto(t.hookCopy.shared, t.state.Hook.Shared)
	t.hookCopy.own = copyInto(t.hookCopy.own, t.state.Hook.Own)
}

// copyInto returns a copy of the content of all, in dst if that is not nil.
func copyInto(dst [][]byte, all []ddp.Slice) [][]byte {
	if dst == nil {
		dst = make([][]byte, len(all))
	}
	for i, s := range all {
		dst[i] = append(dst[i][:0], s.Data.HostSlice()...)
	}
	return dst
}

// adopt gives t and k, on all ranks, the state of the rank with most progress, from its memory
// before the interruption or from the snapshot. If adopt fails, k is unchanged.
func (t *trainer) adopt(ctx context.Context, k *kept, out io.Writer) error {
	saved := t.state.Step
	if k.slices != nil && k.step >= saved {
		t.state.Step, t.state.Seed, t.state.Position, t.state.BucketOrder = k.step, k.seed, k.position, k.bucketOrder
		for i, s := range t.shared() {
			copy(s.Data.HostSlice(), k.slices[i])
		}
	}
	// The progress of a rank: its step, and the work that was due after that step.
	mine := [8]int64{t.state.Step, int64(len(k.points)), int64(len(k.evaluations)), int64(t.state.Seed),
		t.state.Position.Epoch, t.state.Position.Offset, int64(len(t.state.BucketOrder)), int64(k.ranks)}
	all := make([]int64, len(mine)*t.c.Size())
	if err := comm.Allgather(ctx, t.c, mine[:], all); err != nil {
		return err
	}
	of := func(r int) []int64 { return all[len(mine)*r:][:len(mine)] }
	best, keepers := 0, 0 // keepers are as far, and have their unsent numbers
	for r := range t.c.Size() {
		if slices.Compare(of(r)[:3], of(best)[:3]) > 0 {
			best = r
		}
	}
	a := of(best)
	for r := range t.c.Size() {
		if of(r)[0] == a[0] && of(r)[7] > 0 {
			keepers++
		}
	}
	t.state.Step, t.state.Seed, t.state.Position = a[0], uint64(a[3]), sampler.Position{Epoch: a[4], Offset: a[5]}
	if t.recovered = a[0] > 0 && (a[0] > saved || a[1] > 0); t.recovered {
		fmt.Fprintf(out, "recovery: going on after step %d on %d ranks\n", a[0], t.c.Size())
	}
	if a[0] > saved {
		t.loaded = snapshot.Loaded{} // the ranks have passed the snapshot
		t.keepOwn(k)
		if len(t.state.Hook.Own) > 0 {
			fmt.Fprintf(out, "recovery: %d of %d ranks keep what -hook %s had not sent\n", keepers, a[7], t.cfg.hook)
		}
	}
	if a[0] > 0 {
		if err := t.bcastState(ctx, best, int(a[6])); err != nil {
			return err
		}
	}
	points, evaluations, err := t.shareCurve(ctx, k, best, int(a[1]), int(a[2]))
	if err == nil {
		t.copyHook()
		k.keep(t, points, evaluations)
	}
	return err
}

// bcastState gives all ranks the shared state of rank best, whose BucketOrder has params
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

// keepOwn restores the hook's unsent part of this rank's gradients from k. It is the part after the
// step from which all continue, or zero: a rank that has not completed that step cannot tell how
// much of it the others have. The hook divides by the number of ranks. If that has changed, each
// rank's contribution is scaled to stay the same.
func (t *trainer) keepOwn(k *kept) {
	by := float32(t.c.Size()) / float32(k.ranks)
	for i, s := range t.state.Hook.Own {
		own := comm.Slice[float32](s.Data)
		if k.ranks == 0 || k.step != t.state.Step {
			clear(own)
			continue
		}
		copy(s.Data.HostSlice(), k.own[i])
		for j := range own {
			own[j] *= by
		}
	}
}

// shareCurve returns, on all ranks, the n points and m evaluations of rank best.
func (t *trainer) shareCurve(ctx context.Context, k *kept, best, n, m int) (points []point, evaluations []evaluation,
	err error) {
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
