package core_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"gompi/comm"
	"gompi/internal/mem"
)

// A named type is the element type of its kind.
type celsius float32

func TestEveryElementTypeAndOperator(t *testing.T) {
	t.Run("int", func(t *testing.T) { tryType(t, integers[int]()) })
	t.Run("uint", func(t *testing.T) { tryType(t, integers[uint]()) })
	t.Run("uint8", func(t *testing.T) { tryType(t, integers[uint8]()) })
	t.Run("float64", func(t *testing.T) { tryType(t, reals[float64]()) })
	t.Run("named", func(t *testing.T) { tryType(t, reals[celsius]()) })
	t.Run("complex128", func(t *testing.T) { tryType(t, complexes[complex128]()) })
	t.Run("bfloat16", func(t *testing.T) { tryType(t, halves(mem.ToBFloat16)) })
	t.Run("bool", func(t *testing.T) { tryType(t, bools()) })
	t.Run("float64loc", func(t *testing.T) {
		tryType(t, locs(
			func(v, i int) comm.Loc[float64] { return comm.Loc[float64]{Value: float64(v), Index: int64(i)} },
			func(l comm.Loc[float64]) (float64, int64) { return l.Value, l.Index }))
	})
	t.Run("int32loc", func(t *testing.T) {
		tryType(t, locs(
			func(v, i int) comm.Loc[int32] { return comm.Loc[int32]{Value: int32(v), Index: int64(i)} },
			func(l comm.Loc[int32]) (float64, int64) { return float64(l.Value), l.Index }))
	})
}

// tryType moves elements with every collective and reduces them with every
// operator that is defined for them, and sees the others refused.
func tryType[T comm.Scalar](t *testing.T, e elements[T]) {
	const p = 3
	defined := slices.Sorted(maps.Keys(e.ops))
	if e.divide != nil {
		defined = append(defined, comm.Avg)
	}
	inBubble(t, p, func(ctx context.Context, c *comm.Comm) error {
		for _, kind := range everyKind {
			if reduces(kind) {
				continue
			}
			if err := answerAll(ctx, c, e, questions(kind, p, []int{5}, nil)); err != nil {
				return err
			}
		}
		for op := comm.Op(0); op < 20; op++ {
			for _, kind := range []string{"allreduce", "reducescatter", "exscan"} {
				q := question{kind: kind, ranks: p, n: 7, op: op}
				switch {
				case slices.Contains(defined, op):
					if err := answerAll(ctx, c, e, []question{q}); err != nil {
						return err
					}
				case op != comm.Prod: // which the reference leaves out where it is not exact
					q.op = defined[0]
					if err := refused(c, q, op, e); err != nil {
						return err
					}
				}
			}
		}
		return comm.Barrier(ctx, c) // nothing broke
	})
}

// refused asks q with an operator that is not defined, in every spelling.
func refused[T comm.Scalar](c *comm.Comm, q question, op comm.Op, e elements[T]) error {
	a := ask(q, e, c.Rank())
	a.op = op
	for spelling := range spellings {
		if err := formOf[T](q.kind).perform(context.Background(), c, spelling, &a.args); !errors.Is(err,
			comm.ErrArgument) {
			return fmt.Errorf("%s of %v with operator %v: got %v, want ErrArgument", q.kind, a.out().Type(), op, err)
		}
	}
	return nil
}
