package snapshot

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/ddp"
	"gompi/comm/ddp/compress"
	"gompi/comm/ddp/sampler"
)

// A job trains a linear model of features to outputs by gradient descent with momentum.
type job struct {
	opts     ddp.Options
	hook     func() (ddp.Hook, error) // nil: none
	from, to int64                    // steps; from a snapshot if not 0
	path     string                   // "": none is saved
	recalls  HookMemory               // the result of Load
	forgets  bool                     // saves nothing of the hook
	order    []int                    // of the parameters in backward; nil: from the last to the first
	unsorted bool                     // saves nothing of BucketOrder
	tuning   string                   // of collectives
}

const features, outputs, samples, batch, micro = 30, 20, 400, 60, 5

// half is how many outputs belong to each of the two weights.
const half = outputs / 2

// A linear is the model: two weights, which PowerSGD compresses, and a bias, with their momentum.
type linear struct {
	params   []*ddp.Param
	momentum [][]float32
	order    []int // in which backward announces them
}

func newLinear(order []int) *linear {
	if order == nil {
		order = []int{2, 1, 0}
	}
	m := &linear{order: order, params: []*ddp.Param{
		{Name: "upper", Data: make([]float32, half*features), Shape: []int{half, features}},
		{Name: "lower", Data: make([]float32, half*features), Shape: []int{half, features}},
		{Name: "bias", Data: make([]float32, outputs)},
	}}
	for _, p := range m.params {
		m.momentum = append(m.momentum, make([]float32, len(p.Data)))
	}
	return m
}

// numbers returns a copy of all parameters.
func (m *linear) numbers() (all []float32) {
	for _, p := range m.params {
		all = append(all, p.Data...)
	}
	return all
}

// sample returns sample i of a linear function with noise.
func sample(i int) (x, y []float32) {
	x, y = make([]float32, features), make([]float32, outputs)
	truth, own := rand.New(rand.NewPCG(1, 1)), rand.New(rand.NewPCG(uint64(i), 2))
	for j := range x {
		x[j] = float32(own.NormFloat64())
	}
	for o := range y {
		y[o] = float32(0.1 * own.NormFloat64())
		for _, v := range x {
			y[o] += v * float32(truth.NormFloat64())
		}
	}
	return x, y
}

// backward adds the gradients of a batch's samples, times scale, and returns the sum of the squared
// errors.
func (m *linear) backward(batch []int, scale float32, ready func(i int)) (loss float64) {
	bias := m.params[2]
	for _, s := range batch {
		x, y := sample(s)
		for o := range y {
			weight, row := m.params[o/half], o%half*features
			e := bias.Data[o] - y[o]
			for j, v := range x {
				e += weight.Data[row+j] * v
			}
			loss += float64(e) * float64(e)
			bias.Grad[o] += e * scale
			for j, v := range x {
				weight.Grad[row+j] += e * scale * v
			}
		}
	}
	for _, i := range m.order {
		ready(i)
	}
	return loss
}

// state refers to all that a job must remember.
func (m *linear) state() *State {
	s := &State{Seed: 7}
	for i, p := range m.params {
		s.Slices = append(s.Slices, ddp.Slice{Name: p.Name, Data: comm.Of(p.Data)},
			ddp.Slice{Name: "momentum of " + p.Name, Data: comm.Of(m.momentum[i])})
	}
	return s
}

// train returns rank 0's parameters and the loss of each step.
func (j job) train(t *testing.T, size int) (numbers []float32, curve []float64) {
	t.Helper()
	commtest.RunConfig(t, size, comm.Config{Tuning: j.tuning}, func(ctx context.Context, c *comm.Comm) error {
		m, losses, err := j.rank(ctx, c)
		if err == nil && c.Rank() == 0 {
			numbers, curve = m.numbers(), losses
		}
		return err
	})
	return numbers, curve
}

func (j job) rank(ctx context.Context, c *comm.Comm) (m *linear, curve []float64, err error) {
	m = newLinear(j.order)
	state := m.state()
	if j.hook != nil {
		if j.opts.Hook, err = j.hook(); err != nil {
			return nil, nil, err
		}
	}
	if state.Hook, err = ddp.MemoryOf(j.opts.Hook, m.params); err != nil {
		return nil, nil, err
	}
	if j.from > 0 {
		loaded, err := Load(ctx, c, j.path, state)
		if err != nil || !loaded.Found || loaded.Hook != j.recalls || state.Step != j.from {
			return nil, nil, fmt.Errorf("loaded %+v at step %d: %v", loaded, state.Step, err)
		}
	}
	s, err := sampler.New(samples, batch, state.Seed, sampler.Short)
	if err != nil {
		return nil, nil, err
	}
	if s, err = s.Micro(micro); err != nil {
		return nil, nil, err
	}
	j.opts.Accumulate = s.Passes(c.Size())
	j.opts.BucketOrder = state.BucketOrder
	d, err := ddp.New(ctx, c, m.params, j.opts)
	if err != nil {
		return nil, nil, err
	}
	own := m.ownMomentum(d)
	for state.Step < j.to {
		loss, err := m.step(ctx, c, d, s, j.opts.Quantum != 0, state, own)
		if err != nil {
			return nil, nil, err
		}
		curve = append(curve, loss)
	}
	var momentum []comm.Buffer
	for _, v := range m.momentum {
		momentum = append(momentum, comm.Of(v))
	}
	if err := d.GatherShards(ctx, own, momentum); err != nil {
		return nil, nil, err
	}
	if j.path != "" {
		err = j.save(ctx, c, d, state)
	}
	return m, curve, errors.Join(err, d.CheckReplicas(ctx), d.Close(ctx))
}

func (j job) save(ctx context.Context, c *comm.Comm, d *ddp.DDP, state *State) error {
	if state.BucketOrder = d.BucketOrder(); j.unsorted {
		state.BucketOrder = nil
	}
	if j.forgets {
		state.Hook = ddp.Memory{}
	}
	return Save(ctx, c, j.path, state)
}

// ownMomentum returns a copy of the momentum of each shard.
func (m *linear) ownMomentum(d *ddp.DDP) (own []comm.Buffer) {
	for _, s := range d.Shards() {
		own = append(own, comm.Of(slices.Clone(m.momentum[s.Param][s.Begin:s.End])))
	}
	return own
}

func (m *linear) step(ctx context.Context, c *comm.Comm, d *ddp.DDP, s *sampler.Sampler, sums bool, state *State,
	own []comm.Buffer) (float64, error) {
	share, total, next := s.Next(nil, state.Position, c.Rank(), c.Size())
	scale := 1 / float32(total)
	if !sums {
		scale *= float32(c.Size())
	}
	d.ZeroGrad()
	var losses float64
	for pass := range slices.Chunk(share, micro) {
		losses += m.backward(pass, scale, d.Ready)
	}
	d.SkipRest()
	if err := d.Finish(ctx); err != nil {
		return 0, err
	}
	for k, shard := range d.Shards() {
		data, momentum := comm.Slice[float32](shard.Data), comm.Slice[float32](own[k])
		for i, g := range comm.Slice[float32](shard.Grad) {
			momentum[i] = 0.9*momentum[i] + g
			data[i] -= 0.02 * momentum[i]
		}
	}
	if err := d.GatherParams(ctx); err != nil {
		return 0, err
	}
	state.Step, state.Position = state.Step+1, next
	return ddp.Mean(ctx, c, losses, len(share))
}

// A job that continues with another number of ranks follows the curve of one that never stopped.
// The memory of an optimiser of shards is saved whole.
func TestSnapshotContinuesWithAnotherNumberOfRanks(t *testing.T) {
	for name, opts := range map[string]ddp.Options{"exact": {Quantum: 0x1p-44}, "average": {},
		"shards": {Shard: true, FirstBucketBytes: 80, BucketBytes: 80}} {
		want, curve := job{opts: opts, to: 30}.train(t, 2)
		if !(curve[29] < 0.1*curve[0]) {
			t.Fatalf("%s: nothing was learnt: the loss went from %v to %v", name, curve[0], curve[29])
		}
		for _, size := range []int{1, 3, 4} {
			path := filepath.Join(t.TempDir(), "snapshot")
			job{opts: opts, to: 10, path: path}.train(t, 2) // in the middle of an epoch of 7 steps
			got, rest := job{opts: opts, from: 10, to: 30, path: path}.train(t, size)
			if opts.Quantum != 0 && !slices.Equal(got, want) {
				t.Errorf("%d ranks after 2 end with other parameters", size)
			}
			for i, loss := range rest {
				if math.Abs(loss-curve[10+i]) > 1e-4*curve[10+i] {
					t.Errorf("%s: %d ranks after 2: loss at step %d is %v, want %v", name, size, 10+i, loss,
						curve[10+i])
				}
			}
		}
	}
}

// remembering are Hooks that remember their unsent numbers.
var remembering = map[string]func() (ddp.Hook, error){
	"powersgd": func() (ddp.Hook, error) { return compress.PowerSGD(compress.PowerSGDOptions{Rank: 2}) },
	"powersgd from step 15": func() (ddp.Hook, error) {
		return compress.PowerSGD(compress.PowerSGDOptions{Rank: 2, StartStep: 15}) // in the second of three jobs
	},
	"topk": func() (ddp.Hook, error) { return compress.TopK(0.05) },
}

// With the memory of its Hook a job that continues ends with the bits of one that never stopped;
// without it does not, which shows that the test can tell.
func TestHooksGoOnBitForBit(t *testing.T) {
	for name, hook := range remembering {
		for _, size := range []int{1, 2, 3, 4} {
			want, curve := job{hook: hook, to: 30}.train(t, size)
			if !(curve[29] < 0.7*curve[0]) {
				t.Fatalf("%s: nothing was learnt: the loss went from %v to %v", name, curve[0], curve[29])
			}
			path := filepath.Join(t.TempDir(), "snapshot")
			for from := int64(0); from < 30; from += 10 {
				got, _ := job{hook: hook, from: from, to: from + 10, path: path, recalls: Restored}.train(t, size)
				if same := slices.Equal(got, want); same != (from == 20) {
					t.Errorf("%s on %d ranks: after step %d the parameters are those of an undisturbed job after 30: %v", name, size, from+10, same)
				}
			}
			job{hook: hook, to: 10, path: path, forgets: true}.train(t, size)
			got, _ := job{hook: hook, from: 10, to: 30, path: path, recalls: Absent}.train(t, size)
			if slices.Equal(got, want) {
				t.Errorf("%s on %d ranks: a job that has forgotten ends with the same bits: the test shows nothing", name, size)
			}
		}
	}
}

// Ranks of another number share the unsent numbers, and learn as well.
func TestHooksGoOnWithAnotherNumberOfRanks(t *testing.T) {
	for name, hook := range remembering {
		_, curve := job{hook: hook, to: 60}.train(t, 2)
		for _, size := range []int{1, 3} {
			path := filepath.Join(t.TempDir(), "snapshot")
			job{hook: hook, to: 30, path: path}.train(t, 2)
			_, rest := job{hook: hook, from: 30, to: 60, path: path, recalls: Averaged}.train(t, size)
			if !(rest[29] < 1.2*curve[59]) {
				t.Errorf("%s: %d ranks after 2 end with the loss %v, 2 alone with %v, from %v", name, size, rest[29],
					curve[59], curve[29])
			}
		}
	}
}
