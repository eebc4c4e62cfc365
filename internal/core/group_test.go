package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gompi/comm"
)

// ranksOf returns the numbers in the world of g's ranks.
func ranksOf(g, world comm.Group) []int { return g.Translate(world) }

func TestGroups(t *testing.T) {
	inBubble(t, 6, func(ctx context.Context, c *comm.Comm) error {
		w := c.Group()
		pick := func(ranks ...int) comm.Group {
			g, err := w.Incl(ranks...)
			if err != nil {
				t.Error(err)
			}
			return g
		}
		without, err := w.Excl(0, 5)
		if err != nil {
			return err
		}
		for _, tt := range []struct {
			what string
			got  comm.Group
			want []int
		}{
			{"the world", w, []int{0, 1, 2, 3, 4, 5}},
			{"Incl", pick(4, 0, 2), []int{4, 0, 2}},
			{"Incl of nothing", pick(), []int{}},
			{"Excl", without, []int{1, 2, 3, 4}},
			{"Union", pick(4, 0).Union(pick(1, 0, 5)), []int{4, 0, 1, 5}},
			{"Intersection", pick(4, 0, 2).Intersection(pick(2, 3, 4)), []int{4, 2}},
			{"Difference", pick(4, 0, 2).Difference(pick(2, 3)), []int{4, 0}},
			{"Union with nothing", pick(3).Union(comm.Group{}), []int{3}},
		} {
			if err := equal(tt.what, ranksOf(tt.got, w), tt.want); err != nil {
				return err
			}
			if tt.got.Size() != len(tt.want) {
				return fmt.Errorf("%s: size %d, want %d", tt.what, tt.got.Size(), len(tt.want))
			}
		}
		return equal("Translate", pick(1, 4, 3).Translate(pick(3, 1)), []int{1, -1, 0})
	})
}

func TestGroupsRefuseRanksTheyDoNotHave(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		for _, ranks := range [][]int{{2}, {-1}, {0, 0}} {
			if _, err := c.Group().Incl(ranks...); !errors.Is(err, comm.ErrArgument) {
				return fmt.Errorf("Incl%v: got %v, want ErrArgument", ranks, err)
			}
			if _, err := c.Group().Excl(ranks...); !errors.Is(err, comm.ErrArgument) {
				return fmt.Errorf("Excl%v: got %v, want ErrArgument", ranks, err)
			}
		}
		return nil
	})
}

func TestCreateMakesACommOfTheGroupInItsOrder(t *testing.T) {
	inBubble(t, 5, func(ctx context.Context, c *comm.Comm) error {
		order := []int{3, 0, 4}
		g, err := c.Group().Incl(order...)
		if err != nil {
			return err
		}
		sub, err := c.Create(ctx, g)
		if err != nil {
			return err
		}
		at := slices.Index(order, c.Rank())
		if at < 0 {
			if sub != nil {
				return fmt.Errorf("rank %d is not in the group and got %v", c.Rank(), sub)
			}
			return nil
		}
		defer sub.Close(ctx)
		if sub.Rank() != at || sub.Size() != 3 {
			return fmt.Errorf("got %v, want rank %d of 3", sub, at)
		}
		all := make([]int, 3)
		if err := comm.Allgather(ctx, sub, []int{c.Rank()}, all); err != nil {
			return err
		}
		return equal("ranks", all, order)
	})
}

// Ranks that give disjoint groups make a communicator of each, at once, and one of no group none.
func TestCreateMakesCommsOfDisjointGroups(t *testing.T) {
	groups := [][]int{{5, 1}, {0, 2, 4}, {6}, {}, {}} // the ranks of a group give it
	all := func(ctx context.Context, c *comm.Comm) error {
		for range 3 {
			ranks := groups[3]
			for _, g := range groups {
				if slices.Contains(g, c.Rank()) {
					ranks = g
				}
			}
			if c.Rank() == 7 { // gives a group that it is not in
				ranks = groups[1]
			}
			if err := createAndGather(ctx, c, ranks); err != nil {
				return err
			}
		}
		return comm.Barrier(ctx, c)
	}
	for name, run := range waysOf(t) {
		if err := errors.Join(run(t, 8, all)...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// createAndGather makes a communicator of some ranks of c, and sees that it has these, in that
// order.
func createAndGather(ctx context.Context, c *comm.Comm, ranks []int) error {
	g, err := c.Group().Incl(ranks...)
	if err != nil {
		return err
	}
	sub, err := c.Create(ctx, g)
	if err != nil || !slices.Contains(ranks, c.Rank()) {
		if sub != nil {
			err = fmt.Errorf("rank %d is not in %v and got %v", c.Rank(), ranks, sub)
		}
		return err
	}
	defer sub.Close(ctx)
	all := make([]int, len(ranks))
	if err := comm.Allgather(ctx, sub, []int{c.Rank()}, all); err != nil {
		return err
	}
	return equal("ranks", all, ranks)
}

// All ranks learn which group not all of its ranks give, and continue with the communicator.
func TestCreateOfGroupsThatDifferSaysWhichAndBreaksNothing(t *testing.T) {
	inBubble(t, 4, func(ctx context.Context, c *comm.Comm) error {
		ranks := [][]int{{0, 1}, {0, 1}, {1, 2}, {3}}[c.Rank()]
		want := []string{"rank 2 makes a group of 2 ranks, of which 1 make the same",
			"rank 2 makes a group of 2 ranks, of which 1 make the same",
			"rank 2 makes a group of [1 2], but rank 1 a different one",
			"rank 2 makes a group of 2 ranks, of which 1 make the same"}[c.Rank()]
		err := createAndGather(ctx, c, ranks)
		if !errors.Is(err, comm.ErrMismatch) || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("got %v, want %q", err, want)
		}
		return createAndGather(ctx, c, []int{3, 2, 1, 0})
	})
}

func TestCreateOfNothingIsNilEverywhere(t *testing.T) {
	inBubble(t, 3, func(ctx context.Context, c *comm.Comm) error {
		sub, err := c.Create(ctx, comm.Group{})
		if sub != nil || err != nil {
			return fmt.Errorf("got %v, %v", sub, err)
		}
		return comm.Barrier(ctx, c)
	})
}

func TestCreateRefusesAGroupWithOthers(t *testing.T) {
	inBubble(t, 4, func(ctx context.Context, c *comm.Comm) error {
		half, err := c.Split(ctx, c.Rank()%2, 0)
		if err != nil {
			return err
		}
		defer half.Close(ctx)
		if _, err := half.Create(ctx, c.Group()); !errors.Is(err, comm.ErrArgument) {
			return fmt.Errorf("got %v, want ErrArgument", err)
		}
		return comm.Barrier(ctx, half)
	})
}
