package core_test

import (
	"context"
	"fmt"
	"testing"

	"gompi/comm"
)

// everyKind lists all collectives; formOf has their spellings, ask what they do.
var everyKind = []string{
	"barrier", "bcast", "reduce", "allreduce", "reducescatter", "reducescatterblock", "allgather", "allgatherv",
	"gather", "gatherv", "scatter", "scatterv", "alltoall", "alltoallv", "scan", "exscan",
}

func rooted(kind string) bool {
	switch kind {
	case "bcast", "reduce", "gather", "gatherv", "scatter", "scatterv":
		return true
	}
	return false
}

func reduces(kind string) bool {
	switch kind {
	case "reduce", "allreduce", "reducescatter", "reducescatterblock", "scan", "exscan":
		return true
	}
	return false
}

// questions returns the calls to try for one kind, operators taking turns.
func questions(kind string, p int, lengths []int, ops []comm.Op) (qs []question) {
	roots := []int{0}
	if rooted(kind) && p > 1 {
		roots = []int{0, p / 2, p - 1}
	}
	for _, n := range lengths {
		for _, root := range roots {
			for variant := range 4 {
				q := question{kind: kind, ranks: p, n: n, root: root, inPlace: variant&1 != 0, gaps: variant&2 != 0}
				if reduces(kind) {
					q.op = ops[len(qs)%len(ops)]
				}
				qs = append(qs, q)
			}
		}
	}
	return qs
}

// answerAll asks all questions, one after the other, in a spelling that changes
// from call to call and from rank to rank.
func answerAll[T comm.Scalar](ctx context.Context, c *comm.Comm, e elements[T], qs []question) error {
	for i, q := range qs {
		a := ask(q, e, c.Rank())
		a.fill()
		spelling := i + c.Rank()
		if err := formOf[T](q.kind).perform(ctx, c, spelling, &a.args); err != nil {
			return fmt.Errorf("%v: spelling %d: %w", q, spelling%spellings, err)
		}
		if err := a.check(); err != nil {
			return fmt.Errorf("%v: spelling %d: %w", q, spelling%spellings, err)
		}
	}
	return nil
}

// answeringEach is a rank that does every collective on n elements, in place and not.
func answeringEach[T comm.Scalar](e elements[T], n int, op comm.Op) rankFunc {
	return func(ctx context.Context, c *comm.Comm) error {
		p := c.Size()
		for i, kind := range everyKind {
			for _, inPlace := range []bool{false, true} {
				q := question{kind: kind, ranks: p, n: n, root: p - 1, gaps: i%2 == 0, inPlace: inPlace}
				if reduces(kind) {
					q.op = op
				}
				if err := answerAll(ctx, c, e, []question{q}); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

func lengthsFor(p int) []int { return []int{0, 1, p - 1, p, p + 1, 1000} }

func TestCollectivesAgreeWithTheReference(t *testing.T) {
	e := reals[float64]()
	ops := []comm.Op{comm.Sum, comm.Max, comm.Min, comm.Avg}
	for _, p := range []int{1, 2, 3, 4, 5, 8} {
		for _, kind := range everyKind {
			t.Run(fmt.Sprintf("%s/%d", kind, p), func(t *testing.T) {
				inBubble(t, p, func(ctx context.Context, c *comm.Comm) error {
					return answerAll(ctx, c, e, questions(kind, p, lengthsFor(p), ops))
				})
			})
		}
	}
}

// Lengths at which other algorithms serve, and messages travel on request.
func TestLongVectorsAgreeWithTheReference(t *testing.T) {
	e := integers[int64]()
	for _, p := range []int{2, 3, 4} {
		for _, n := range []int{9000, 40_000} {
			if testing.Short() && n*p > 40_000 {
				continue
			}
			inBubble(t, p, func(ctx context.Context, c *comm.Comm) error {
				for i, kind := range everyKind {
					q := question{kind: kind, ranks: p, n: n, root: p - 1, gaps: i%2 == 0, inPlace: i%3 == 0}
					if reduces(kind) {
						q.op = comm.Sum
					}
					if err := answerAll(ctx, c, e, []question{q}); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
}

func Test256RanksAgreeWithTheReference(t *testing.T) {
	p := 256
	if testing.Short() {
		p = 100
	}
	e := integers[int32]()
	inBubble(t, p, func(ctx context.Context, c *comm.Comm) error {
		for _, kind := range everyKind {
			q := question{kind: kind, ranks: p, n: 2, root: p - 50}
			if reduces(kind) {
				q.op = comm.Sum
			}
			if err := answerAll(ctx, c, e, []question{q}); err != nil {
				return err
			}
		}
		return nil
	})
}
