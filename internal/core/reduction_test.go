package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"gompi/comm"
	"gompi/internal/core/path"
)

// An affine map x -> Value*x + Index: composing them is associative and does not
// commute.
type affine = comm.Loc[int64]

func compose(acc, in []affine) {
	for i, g := range in {
		f := acc[i]
		acc[i] = affine{Value: f.Value * g.Value, Index: f.Value*g.Index + f.Index}
	}
}

func affineOf(rank, n int) []affine {
	v := make([]affine, n)
	for i := range v {
		v[i] = affine{Value: int64(small(rank, i) + 2), Index: int64(rank*i + 1)}
	}
	return v
}

func composed(p, n int) []affine {
	v := affineOf(0, n)
	for r := 1; r < p; r++ {
		compose(v, affineOf(r, n))
	}
	return v
}

func TestFunctionsCombineInRankOrder(t *testing.T) {
	for _, p := range []int{1, 2, 3, 4, 5, 8} {
		inBubble(t, p, func(ctx context.Context, c *comm.Comm) error {
			for _, n := range []int{0, 1, p, 1000, 20_000} { // the last in chunks, on request
				if err := errors.Join(composeEverywhere(ctx, c, n), composeAt(ctx, c, n, 0),
					composeAt(ctx, c, n, p-1)); err != nil {
					return fmt.Errorf("np=%d, n=%d: %w", p, n, err)
				}
			}
			return nil
		})
	}
}

func composeEverywhere(ctx context.Context, c *comm.Comm, n int) error {
	p := c.Size()
	send, recv := affineOf(c.Rank(), n), make([]affine, n)
	if err := comm.AllreduceFunc(ctx, c, send, recv, compose); err != nil {
		return err
	}
	if err := errors.Join(equal("recv", recv, composed(p, n)), equal("send", send, affineOf(c.Rank(), n))); err != nil {
		return err
	}
	if err := comm.AllreduceFunc(ctx, c, send, send, compose); err != nil {
		return err
	}
	return equal("in place", send, composed(p, n))
}

func composeAt(ctx context.Context, c *comm.Comm, n, root int) error {
	send, recv := affineOf(c.Rank(), n), make([]affine, n)
	if err := comm.ReduceFunc(ctx, c, root, send, recv, compose); err != nil {
		return err
	}
	if c.Rank() != root {
		return equal("recv away from the root", recv, make([]affine, n))
	}
	return equal("recv", recv, composed(c.Size(), n))
}

func TestFunctionIsRequired(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		v := make([]int, 1)
		if err := comm.AllreduceFunc(ctx, c, v, v, nil); !errors.Is(err, comm.ErrArgument) {
			return fmt.Errorf("allreduce: got %v, want ErrArgument", err)
		}
		if err := comm.ReduceFunc(ctx, c, 0, v, make([]int, 1), nil); !errors.Is(err, comm.ErrArgument) {
			return fmt.Errorf("reduce: got %v, want ErrArgument", err)
		}
		return comm.Barrier(ctx, c)
	})
}

// rough returns numbers whose sum depends on the order of additions.
func rough(rank, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(math.Sin(float64(rank*1009+i))) * float32(int(1)<<((rank*7+i)%20))
	}
	return v
}

func bitsOf(v []float32) []uint32 {
	bits := make([]uint32, len(v))
	for i, x := range v {
		bits[i] = math.Float32bits(x)
	}
	return bits
}

func TestFloatSumsAreTheSameBitsOnAllRanks(t *testing.T) {
	for _, p := range []int{2, 3, 5, 8} {
		inBubble(t, p, sameBits)
	}
}

// sameBits compares every rank's sums with those of rank 0.
func sameBits(ctx context.Context, c *comm.Comm) error {
	for _, n := range []int{1, 50, 3000, 100_000} {
		sum := make([]float32, n)
		if err := comm.Allreduce(ctx, c, rough(c.Rank(), n), sum, comm.Sum); err != nil {
			return err
		}
		zero := bitsOf(sum)
		if err := comm.Bcast(ctx, c, 0, zero); err != nil {
			return err
		}
		if err := equal(fmt.Sprintf("np=%d, n=%d: bits, and rank 0's", c.Size(), n), bitsOf(sum), zero); err != nil {
			return err
		}
	}
	return nil
}

// tunings returns the settings that force each algorithm of the given
// collectives in turn, none for all, and the default. The names are those that
// the refusal of a wrong one lists.
func tunings(t *testing.T, collectives ...string) []string {
	t.Helper()
	list := func(wrong string) []string {
		err := new(path.Rules).Tune(wrong)
		if err == nil {
			t.Fatalf("tuning %q was accepted", wrong)
		}
		_, names, _ := strings.Cut(err.Error(), "want ")
		return strings.Split(names, ", ")
	}
	if len(collectives) == 0 {
		collectives = list("?:?")
	}
	all := []string{""}
	for _, c := range collectives {
		for _, alg := range list(c + ":?") {
			all = append(all, c+":"+alg)
		}
	}
	return all
}

// reductions returns the bits of every kind of reduction of n elements.
func reductions(ctx context.Context, c *comm.Comm, n int) (map[string][]uint32, error) {
	p, me := c.Size(), c.Rank()
	sum, scan, block := make([]float32, n), make([]float32, n), make([]float32, n)
	at, all := make([]float32, n), make([]float32, 0, n*p)
	for range p { // so that every rank's block is the same sum
		all = append(all, rough(me, n)...)
	}
	mine := rough(me, n)
	err := errors.Join(
		comm.Allreduce(ctx, c, mine, sum, comm.Sum),
		comm.Reduce(ctx, c, n%p, mine, at, comm.Sum),
		comm.Scan(ctx, c, mine, scan, comm.Sum),
		comm.ReduceScatterBlock(ctx, c, all, block, comm.Sum))
	if me != n%p {
		at = sum // means nothing here
	}
	return map[string][]uint32{"allreduce": bitsOf(sum), "reduce": bitsOf(at), "scan": bitsOf(scan),
		"reducescatter": bitsOf(block)}, err
}

// In deterministic mode element i has the same bits whatever the algorithm, the
// length and the transport.
func TestDeterministicBitsDependOnNothingElse(t *testing.T) {
	for _, p := range []int{3, 4, 7} {
		want := make([]map[string][]uint32, p)
		compare := func(ctx context.Context, c *comm.Comm) error {
			for _, n := range []int{3000, 1, 7, 400} {
				got, err := reductions(ctx, c, n)
				if err != nil {
					return err
				}
				if want[c.Rank()] == nil {
					want[c.Rank()] = got
				}
				for name, bits := range got {
					what := fmt.Sprintf("np=%d, %s of %d", p, name, n)
					if err := equal(what, bits, want[c.Rank()][name][:n]); err != nil {
						return err
					}
				}
			}
			return nil
		}
		for _, tuning := range tunings(t, "allreduce", "reduce", "reducescatter", "scan") {
			withConfig(t, p, comm.Config{Deterministic: true, Tuning: tuning}, compare)
			if t.Failed() {
				t.Fatalf("with tuning %q", tuning)
			}
		}
		if err := errors.Join(overTCPWith(t, p, comm.Config{Deterministic: true}, compare)...); err != nil {
			t.Errorf("over TCP: %v", err)
		}
		if err := errors.Join(overMemoryWith(t, p, comm.Config{Deterministic: true}, compare)...); err != nil {
			t.Errorf("over shared memory: %v", err)
		}
	}
}

// Every algorithm can be forced, and gives the right result.
func TestTuningChangesTheAlgorithmAndNotTheResult(t *testing.T) {
	e := integers[int64]()
	for _, tuning := range tunings(t) {
		withConfig(t, 4, comm.Config{Tuning: tuning}, func(ctx context.Context, c *comm.Comm) error {
			for _, kind := range everyKind {
				if err := answerAll(ctx, c, e, questions(kind, 4, []int{17}, []comm.Op{comm.Sum})); err != nil {
					return fmt.Errorf("tuning %q: %w", tuning, err)
				}
			}
			return nil
		})
	}
}
