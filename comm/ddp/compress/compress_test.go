package compress

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/ddp"
)

// newBucket returns one of parameters with these shapes, named p0, p1 and so on.
func newBucket(shapes ...[]int) *ddp.Bucket {
	b := &ddp.Bucket{}
	for i, shape := range shapes {
		n := 1
		for _, d := range shape {
			n *= d
		}
		b.Params = append(b.Params, ddp.BucketPart{Name: fmt.Sprintf("p%d", i), Shape: shape, Grad: make([]float32, n)})
		b.Grads = append(b.Grads, make([]float32, n)...)
	}
	at := 0
	for i := range b.Params {
		n := len(b.Params[i].Grad)
		b.Params[i].Grad = b.Grads[at:][:n]
		at += n
	}
	return b
}

// random fills x with the gradients of a rank in a step, which every rank can compute.
func random(x []float32, rank, step int) {
	r := rand.New(rand.NewPCG(uint64(rank), uint64(step)))
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
}

// averages returns the averages of random over ranks, in float64, and the averages of the
// magnitudes.
func averages(n, ranks, step int) (avg, magnitudes []float64) {
	avg, magnitudes = make([]float64, n), make([]float64, n)
	x := make([]float32, n)
	for rank := range ranks {
		random(x, rank, step)
		for i, v := range x {
			avg[i] += float64(v) / float64(ranks)
			magnitudes[i] += math.Abs(float64(v)) / float64(ranks)
		}
	}
	return avg, magnitudes
}

// wantSameBits returns an error unless x has the same bits as on rank 0.
func wantSameBits(ctx context.Context, c *comm.Comm, x []float32) error {
	zeros := make([]float32, len(x))
	copy(zeros, x)
	if err := comm.Bcast(ctx, c, 0, zeros); err != nil {
		return err
	}
	for i, v := range x {
		if math.Float32bits(v) != math.Float32bits(zeros[i]) {
			return fmt.Errorf("number %d is %x, on rank 0 %x", i, v, zeros[i])
		}
	}
	return nil
}

// wantError returns an error unless err has all these parts.
func wantError(err error, parts ...string) error {
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			return fmt.Errorf("got error %q, want one with %q", fmt.Sprint(err), part)
		}
	}
	return nil
}

func powersgd(t testing.TB, opts PowerSGDOptions) ddp.Hook {
	t.Helper()
	h, err := PowerSGD(opts)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func topk(t testing.TB, ratio float64) ddp.Hook {
	t.Helper()
	h, err := TopK(ratio)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// hooks make one of each.
func hooks(t testing.TB) map[string]func() ddp.Hook {
	return map[string]func() ddp.Hook{
		"fp16":     FP16,
		"bf16":     BF16,
		"powersgd": func() ddp.Hook { return powersgd(t, PowerSGDOptions{Rank: 2}) },
		"topk":     func() ddp.Hook { return topk(t, 0.1) },
	}
}

func TestAllRanksGetTheSameBits(t *testing.T) {
	for name, newHook := range hooks(t) {
		for _, ranks := range []int{1, 2, 3, 5} {
			t.Run(fmt.Sprintf("%s/%d", name, ranks), func(t *testing.T) {
				commtest.Run(t, ranks, func(ctx context.Context, c *comm.Comm) error {
					h, b := newHook(), newBucket([]int{40, 5, 6}, nil, []int{7}, []int{3, 3}, []int{31, 17})
					for b.Step = range 5 {
						random(b.Grads, c.Rank(), b.Step)
						if err := h.Average(ctx, c, b); err != nil {
							return err
						}
						if err := wantSameBits(ctx, c, b.Grads); err != nil {
							return fmt.Errorf("step %d: %w", b.Step, err)
						}
					}
					return nil
				})
			})
		}
	}
}

// The numbers sent in all steps, and the average of the ranks' remembered errors, add up to the
// averages of their gradients.
func TestErrorFeedbackLosesNothing(t *testing.T) {
	const ranks, steps = 3, 12
	for _, name := range []string{"powersgd", "topk"} {
		t.Run(name, func(t *testing.T) {
			newHook := hooks(t)[name]
			commtest.Run(t, ranks, func(ctx context.Context, c *comm.Comm) error {
				h, b := newHook(), newBucket([]int{40, 30}, []int{9})
				n := len(b.Grads)
				sent, want := make([]float64, n), make([]float64, n)
				for b.Step = range steps {
					random(b.Grads, c.Rank(), b.Step)
					if err := h.Average(ctx, c, b); err != nil {
						return err
					}
					avg, _ := averages(n, ranks, b.Step)
					for i, v := range b.Grads {
						sent[i] += float64(v)
						want[i] += avg[i]
					}
				}
				return wantSum(ctx, c, sent, remembered(h, b), want)
			})
		})
	}
}

// remembered returns h's remembered errors of the numbers of b.
func remembered(h ddp.Hook, b *ddp.Bucket) []float64 {
	var s states
	switch h := h.(type) {
	case *topK:
		s = h.states
	case *powerSGD:
		s = h.states
	}
	var all []float64
	for _, p := range b.Params {
		part := make([]float64, len(p.Grad))
		if x := s[p.Name]; x != nil {
			for i, v := range x.errors {
				part[i] = float64(v)
			}
		}
		all = append(all, part...)
	}
	return all
}

// wantSum compares sent and the average of kept with want, but for rounding.
func wantSum(ctx context.Context, c *comm.Comm, sent, kept, want []float64) error {
	if err := comm.Allreduce(ctx, c, kept, kept, comm.Avg); err != nil {
		return err
	}
	most := 0.0
	for i := range sent {
		if got := sent[i] + kept[i]; !(math.Abs(got-want[i]) < 1e-4) {
			return fmt.Errorf("number %d: %g was sent and %g is kept, want %g", i, sent[i], kept[i], want[i])
		}
		most = max(most, math.Abs(kept[i]))
	}
	if most < 0.1 {
		return fmt.Errorf("at most %g is kept: the test is too easy", most)
	}
	return nil
}

func TestRatiosAndRanksOutOfRangeAreRefused(t *testing.T) {
	for _, ratio := range []float64{0, -0.1, 1.001, math.NaN(), math.Inf(1)} {
		_, err := TopK(ratio)
		if err := wantError(err, fmt.Sprintf("ratio is %g: want more than 0 and at most 1", ratio)); err != nil {
			t.Error(err)
		}
	}
	for want, opts := range map[string]PowerSGDOptions{
		"Rank is 0: want at least 1":               {},
		"Rank is -1: want at least 1":              {Rank: -1},
		"StartStep is -2: want no negative number": {Rank: 1, StartStep: -2},
	} {
		_, err := PowerSGD(opts)
		if err := wantError(err, want); err != nil {
			t.Error(err)
		}
	}
}

func TestHooksThatRememberRefuseWhatIsNotFinite(t *testing.T) {
	for name, newHook := range hooks(t) {
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			if name == "fp16" || name == "bf16" {
				continue
			}
			for i, parameter := range []string{"p0", "p1", "p2"} {
				t.Run(fmt.Sprintf("%s/%v/%s", name, bad, parameter), func(t *testing.T) {
					commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error {
						h, b := newHook(), newBucket([]int{40, 30}, []int{9}, []int{20, 40})
						random(b.Grads, c.Rank(), 0)
						if c.Rank() > 0 {
							b.Params[i].Grad[3] = float32(bad)
						}
						return wantError(h.Average(ctx, c, b), "rank 1", fmt.Sprintf("%q is not finite", parameter))
					})
				})
			}
		}
	}
}

func TestParametersThatCannotBeDistinguishedAreRefused(t *testing.T) {
	for _, name := range []string{"powersgd", "topk"} {
		newHook := hooks(t)[name]
		commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
			h, b := newHook(), newBucket([]int{40, 30}, []int{40, 30})
			b.Params[1].Name = "p0"
			if err := wantError(h.Average(ctx, c, b), `two parameters are named "p0"`); err != nil {
				return err
			}
			h, b = newHook(), newBucket([]int{40, 30})
			if err := h.Average(ctx, c, b); err != nil {
				return err
			}
			b = newBucket([]int{40, 31})
			b.Step = 1
			return wantError(h.Average(ctx, c, b), `"p0" has 1240 numbers, and had 1200: want a Hook for each DDP`)
		})
	}
}

func TestRanksWithDifferentHooksAreRefused(t *testing.T) {
	for want, other := range map[string]ddp.Hook{
		"hook bf16":                            BF16(),
		"hook topk of 0.1":                     topk(t, 0.1),
		"hook powersgd of rank 2 from step 9":  powersgd(t, PowerSGDOptions{Rank: 2, StartStep: 9}),
		"hook powersgd of rank 1 from step 10": powersgd(t, PowerSGDOptions{Rank: 1, StartStep: 10}),
	} {
		commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
			h := powersgd(t, PowerSGDOptions{Rank: 2, StartStep: 10})
			if c.Rank() == 1 {
				h = other
			}
			_, err := ddp.New(ctx, c, nil, ddp.Options{Hook: h})
			return wantError(err, "hook powersgd of rank 2 from step 10", want)
		})
	}
}

func TestMemoryIsOfWhatIsCompressed(t *testing.T) {
	params := []*ddp.Param{
		{Name: "matrix", Data: make([]float32, 40*30), Shape: []int{40, 30}},
		{Name: "table", Data: make([]float32, 40*30), Shape: []int{40, 30}, Row: 30}, // is averaged without a Hook
		{Name: "bias", Data: make([]float32, 30)},
	}
	for name, want := range map[string][2]string{
		"fp16":     {},
		"bf16":     {},
		"powersgd": {"powersgd.steps:1 powersgd.q/matrix:60 powersgd.drawn/matrix:1", "powersgd.error/matrix:1200"},
		"topk":     {"", "topk.error/matrix:1200 topk.error/bias:30"},
	} {
		m, err := ddp.MemoryOf(hooks(t)[name](), params)
		if got := [2]string{lengths(m.Shared), lengths(m.Own)}; err != nil || got != want {
			t.Errorf("%s remembers %q (%v), want %q", name, got, err, want)
		}
		if want == [2]string{} {
			continue
		}
		_, err = ddp.MemoryOf(hooks(t)[name](), append(params, params[0]))
		if err := wantError(err, name+`: two parameters are named "matrix"`); err != nil {
			t.Error(err)
		}
	}
	if m, err := ddp.MemoryOf(nil, params); err != nil || lengths(m.Shared)+lengths(m.Own) != "" {
		t.Errorf("without a Hook there is %+v (%v)", m, err)
	}
}

func lengths(all []ddp.Slice) string {
	var words []string
	for _, s := range all {
		words = append(words, fmt.Sprintf("%s:%d", s.Name, s.Data.Len()))
	}
	return strings.Join(words, " ")
}
